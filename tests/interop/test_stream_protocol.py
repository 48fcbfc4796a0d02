"""``__cuda_stream__`` both ways, and raw handles."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._core import _interop

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a CUDA driver refuses what is tested here, which has tests of its own."""
    monkeypatch.setattr(_interop, "cuda_driver_loadable", lambda: False)


class Theirs:
    """Another library's stream."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


class Attribute:
    __cuda_stream__ = (0, 2)


def test_a_stream_returns_its_handle() -> None:
    s = hs.Stream()
    assert s.__cuda_stream__() == (0, s.handle)
    assert hs.Device(0).default_stream.__cuda_stream__() == (0, 0)
    assert hs.Device(0).per_thread_stream.__cuda_stream__() == (0, 2)


@pytest.mark.needs("host")
def test_with_a_cuda_driver_streams_of_the_host_are_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_interop, "cuda_driver_loadable", lambda: True)
    s = hs.Stream()
    with pytest.raises(hs.NotSupportedError, match="cuda backend"):
        s.__cuda_stream__()
    with pytest.raises(hs.NotSupportedError, match="cuda backend"):
        hs.Stream.from_cuda_stream(Theirs((0, 1)))
    assert hs.Stream.from_cuda_stream(s) is s  # our own needs no driver


def test_a_stream_that_is_exported_and_imported_is_the_same() -> None:
    s = hs.Stream(device=1)
    back = hs.Stream.from_cuda_stream(Theirs(s.__cuda_stream__()))
    assert back == s and hash(back) == hash(s) and back.device == hs.Device(1)
    assert hs.Stream.from_cuda_stream(s) is s
    with pytest.raises(hs.InvalidValueError, match="maker"):
        back.close()


@pytest.mark.parametrize(("answer", "handle"), [((0, 0), 0), ((0, 1), 0), ((0, 2), 2), ([0, 2], 2)])
def test_default_streams_are_those_of_the_requested_device(answer: Any, handle: int) -> None:
    s = hs.Stream.from_cuda_stream(Theirs(answer), 1)
    assert s.handle == handle and s.device == hs.Device(1)


def test_an_attribute_in_place_of_the_method_is_tolerated() -> None:
    assert hs.Stream.from_cuda_stream(Attribute()).handle == 2


def test_the_object_lives_as_long_as_the_stream() -> None:
    theirs = Theirs((0, 2))
    alive = weakref.ref(theirs)
    s = hs.Stream.from_cuda_stream(theirs)
    del theirs
    gc.collect()
    assert alive() is not None
    del s
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("wrong", [None, 3, "stream", object()])
def test_what_is_no_stream_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="__cuda_stream__"):
        hs.Stream.from_cuda_stream(wrong)


@pytest.mark.parametrize("answer", [None, 5, (0,), (0, 1, 2), (0, "x"), ("a", 1), (0.0, 1)])
def test_a_wrong_answer_is_refused(answer: Any) -> None:
    with pytest.raises(hs.InvalidValueError, match="not a version and a handle"):
        hs.Stream.from_cuda_stream(Theirs(answer))


def test_a_later_version_and_an_unknown_handle_are_refused() -> None:
    with pytest.raises(hs.InvalidValueError, match="version 1"):
        hs.Stream.from_cuda_stream(Theirs((1, 2)))
    with pytest.raises(hs.InvalidHandleError):
        hs.Stream.from_cuda_stream(Theirs((0, 0x7F00_0000_1000)))


def test_work_is_ordered_with_another_library_s_object(hold: Hold) -> None:
    s, waiter = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    gate = hold(s)
    waiter.wait(Theirs((0, s.handle)))
    waiter.nop()
    assert not waiter.query()
    gate.open()
    waiter.synchronize(timeout=LIMIT)


def test_every_stream_argument_takes_such_an_object(hold: Hold) -> None:
    s = hs.Stream(non_blocking=True)
    theirs: Any = Theirs((0, s.handle))
    gate = hold(s)
    ours, target = hs.zeros(4), hs.pinned_empty(4)
    target[:] = 0
    hs.Device(0).default_stream.synchronize(timeout=LIMIT)
    ours.fill(1.0, theirs)
    ours.copy_to(target, theirs)
    assert not target.any()
    gate.open()
    s.synchronize(timeout=LIMIT)
    np.testing.assert_array_equal(target, np.ones(4))
    hs.use(theirs)
    assert hs.current_stream() == s
    with pytest.raises(TypeError, match="__cuda_stream__"):
        ours.fill(1.0, 3)  # type: ignore[arg-type]


def test_dialects_take_each_other_s_streams() -> None:
    from halstream import cupy, torch

    s = torch.cuda.Stream()
    assert cupy.cuda.Stream.from_external(s) == s
    assert hs.Stream.from_cuda_stream(cupy.cuda.Stream(non_blocking=True)).non_blocking
    assert hs.Stream.from_handle(s.cuda_stream).handle == s.cuda_stream
    mine = hs.Stream()
    assert torch.cuda.ExternalStream(mine.handle).cuda_stream == mine.handle
