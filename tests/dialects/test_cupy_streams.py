"""cupy.cuda: stream objects, what they are equal to, and which one is current."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from operator import ne
from typing import Any

import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Event, Stream, get_current_stream
from halstream.cupy.cuda.stream import _BaseStream

pytestmark = pytest.mark.dialect("cupy")

LIMIT = 10.0
MAKERS = {
    "null": lambda: Stream(null=True),
    "ptds": lambda: Stream(ptds=True),
    "plain": Stream,
}


@pytest.fixture(params=MAKERS)
def stream(request: pytest.FixtureRequest, backend: str) -> Stream:
    return MAKERS[request.param]()


def in_thread(function: Callable[[], Any]) -> Any:
    """Run a function in a thread of its own and return its result or raise its error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(LIMIT)


# -- identity ---------------------------------------------------------------


@pytest.mark.row(1)
def test_null_streams_are_equal(backend: str) -> None:
    assert Stream.null == Stream(True)
    assert Stream(True) == Stream(True)
    assert ne(Stream.null, Stream(True)) is False


@pytest.mark.row(2)
def test_ptds_equals_ptds_and_not_null(backend: str) -> None:
    assert Stream.ptds == Stream(ptds=True)
    assert Stream(True) != Stream(ptds=True)
    assert Stream(null=True, ptds=True) == Stream.null


@pytest.mark.row(3)
def test_new_stream_equals_nothing_else(backend: str) -> None:
    new = Stream()
    assert new not in (Stream.null, Stream.ptds, Stream())
    assert new == new
    assert new != new.ptr and new != None  # noqa: E711


@pytest.mark.row(4)
def test_hash_and_dict_keys(backend: str) -> None:
    streams = [Stream.null, Stream.ptds, Stream(), Stream()]
    table = {s: i for i, s in enumerate(streams)}
    assert [table[s] for s in streams] == [0, 1, 2, 3]
    assert table[Stream(null=True)] == 0
    assert all(hash(s) == hash(s.ptr) for s in streams)


def test_handles_and_devices(backend: str) -> None:
    assert (Stream.null.ptr, Stream.null.device_id) == (0, -1)
    assert (Stream.ptds.ptr, Stream.ptds.device_id) == (2, -1)
    new = Stream()
    assert isinstance(new.ptr, int) and new.ptr > 2 and new.device_id == 0
    with cuda.Device(1):
        assert Stream().device_id == 1


def test_repr(backend: str) -> None:
    new = Stream()
    assert repr(Stream.null) == "<Stream 0 (device -1)>"
    assert repr(Stream.ptds) == "<Stream 2 (device -1)>"
    assert repr(new) == f"<Stream {new.ptr} (device 0)>"


def test_types(backend: str) -> None:
    assert type(Stream.null) is Stream and type(Stream.ptds) is Stream
    assert isinstance(Stream(), _BaseStream) and not hasattr(cuda, "BaseStream")
    assert Stream.__module__.endswith("cupy.cuda.stream")
    with pytest.raises(AttributeError, match="type object 'Stream' has no attribute 'ptr'"):
        Stream.ptr  # noqa: B018
    with pytest.raises(TypeError, match="'<' not supported"):
        Stream.null < Stream.ptds  # type: ignore[operator]  # noqa: B015
    assert bool(Stream.null)


def test_subclass_with_its_own_init(backend: str) -> None:
    class Named(Stream):
        def __init__(self, name: str) -> None:
            super().__init__(non_blocking=True)
            self.name = name

    named = Named("copies")
    assert repr(named) == f"<Named {named.ptr} (device 0)>"
    with named:
        assert get_current_stream() is named


@pytest.mark.parametrize("action", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(stream: Stream, action: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="cannot pickle or copy"):
        action(stream)


# -- properties -------------------------------------------------------------


@pytest.mark.row(24)
def test_is_non_blocking(backend: str) -> None:
    assert Stream().is_non_blocking is False
    assert Stream(non_blocking=True).is_non_blocking is True
    assert Stream.null.is_non_blocking is False


@pytest.mark.row(25)
def test_priority(backend: str) -> None:
    assert Stream(priority=0).priority == 0
    assert Stream(priority=-1).priority == -1
    assert Stream().priority == 0 and Stream.null.priority == 0
    with pytest.raises(AttributeError, match=r"no setter|can't set"):  # the latter is 3.10's
        Stream.null.priority = 1  # type: ignore[misc]


@pytest.mark.row(26)
def test_priority_outside_the_range_is_clamped(backend: str) -> None:
    least, greatest = cuda.Device(0).priority_range
    assert greatest <= Stream(priority=-3).priority <= least
    assert Stream(priority=-1000).priority == greatest
    assert Stream(priority=1000).priority == least


def test_wrong_arguments(backend: str) -> None:
    with pytest.raises(TypeError, match="an integer is required"):
        Stream(priority="x")  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="value too large to convert to int"):
        Stream(priority=2**40)
    with pytest.raises(TypeError, match="bogus"):
        Stream(bogus=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Stream(False, False, False, None, 1)  # type: ignore[call-arg]


def test_done_follows_the_work(stream: Stream, hold: Any) -> None:
    gate = hold(stream)
    assert stream.done is False
    gate.open()
    stream.synchronize(timeout=LIMIT)
    assert stream.done is True
    with pytest.raises(AttributeError):
        stream.done = True  # type: ignore[misc]


def test_done_of_a_broken_handle_is_false(backend: str) -> None:
    with pytest.warns(DeprecationWarning):
        bad = cuda.ExternalStream(987654321)
    assert bad.done is False
    with pytest.raises(cuda.runtime.CUDARuntimeError, match=r"^cudaErrorInvalidResourceHandle: "):
        bad.synchronize()


def test_synchronize_blocks_until_done(hold: Any) -> None:
    s = Stream()
    gate = hold(s)
    with pytest.raises(cuda.runtime.CUDARuntimeError, match=r"^cudaErrorTimeout: ") as info:
        s.synchronize(timeout=0.01)
    assert isinstance(info.value, TimeoutError)
    gate.open()
    s.synchronize()
    assert s.done


# -- order ------------------------------------------------------------------


@pytest.mark.needs("held-streams")
def test_null_waits_for_blocking_streams_only(hold: Any) -> None:
    blocking, other = Stream(), Stream(non_blocking=True)
    gate = hold(blocking)
    Stream.null.record(Event())
    assert not Stream.null.done
    other.nop()
    other.synchronize(timeout=LIMIT)
    gate.open()
    Stream.null.synchronize(timeout=LIMIT)


def test_null_means_the_current_device(hold: Any) -> None:
    gate = hold(Stream.null)
    with cuda.Device(1):
        assert Stream.null.done
    assert not Stream.null.done
    gate.open()
    Stream.null.synchronize(timeout=LIMIT)


def test_ptds_is_the_callers(hold: Any) -> None:
    gate = hold(Stream.ptds)
    assert not Stream.ptds.done
    assert in_thread(lambda: Stream.ptds.done)
    gate.open()
    Stream.ptds.synchronize(timeout=LIMIT)
