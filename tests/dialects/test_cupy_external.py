"""cupy.cuda: streams made elsewhere, ExternalStream and the CUDA stream protocol."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from halstream._core import _interop
from halstream.cupy import cuda
from halstream.cupy.cuda import Event, ExternalStream, Stream, get_current_stream, runtime

pytestmark = [
    pytest.mark.dialect("cupy"),
    pytest.mark.filterwarnings("ignore:ExternalStream is deprecated:DeprecationWarning"),
]

LIMIT = 10.0


class Owner:
    """A stream of another library."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behave as on a machine without a CUDA driver."""
    monkeypatch.setattr(_interop, "cuda_driver_loadable", lambda: False)


@pytest.mark.row(27)
def test_external_stream_warns_at_the_caller(backend: str) -> None:
    handle = runtime.streamCreate()
    with pytest.warns(DeprecationWarning, match="ExternalStream is deprecated") as caught:
        external = ExternalStream(handle)
    assert caught[0].filename == __file__
    assert external.ptr == handle and external.device_id == -1
    runtime.streamDestroy(handle)


def test_external_stream_takes_anything_until_used(backend: str) -> None:
    assert repr(ExternalStream("x")) == "<ExternalStream x (device -1)>"  # type: ignore[arg-type]
    assert repr(ExternalStream(7, 1)) == "<ExternalStream 7 (device 1)>"
    assert not issubclass(ExternalStream, Stream)
    with pytest.raises(TypeError):
        ExternalStream("x").synchronize()  # type: ignore[arg-type]


def test_external_stream_equality_follows_the_number(backend: str) -> None:
    assert ExternalStream(0) == Stream.null
    assert ExternalStream(2) == Stream.ptds
    assert ExternalStream(1) != Stream.null
    s = Stream()
    assert ExternalStream(s.ptr) == s and hash(ExternalStream(s.ptr)) == hash(s)


def test_external_one_is_the_null_stream(hold: Any) -> None:
    gate = hold(Stream.null)
    assert not ExternalStream(1).done
    gate.open()
    ExternalStream(1).synchronize(timeout=LIMIT)


def test_external_stream_is_another_name(hold: Any) -> None:
    s = Stream(non_blocking=True, priority=-1)
    external = ExternalStream(s.ptr)
    gate = hold(s)
    assert not external.done
    assert external.is_non_blocking and external.priority == -1
    gate.open()
    external.synchronize(timeout=LIMIT)
    with external:
        assert get_current_stream() is external


@pytest.mark.row(30)
def test_wrapped_handle_may_be_destroyed(backend: str) -> None:
    handle = runtime.streamCreate()
    external = ExternalStream(handle)
    external.record().synchronize(timeout=LIMIT)
    runtime.streamDestroy(handle)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidResourceHandle"):
        external.synchronize()
    del external
    gc.collect()
    Stream().synchronize(timeout=LIMIT)


def test_wrapper_does_not_own(backend: str) -> None:
    s = Stream()
    del_me = Stream.from_external(s)
    external = ExternalStream(s.ptr)
    external.synchronize(timeout=LIMIT)
    del del_me, external
    gc.collect()
    s.record().synchronize(timeout=LIMIT)


# -- the protocol -----------------------------------------------------------


@pytest.mark.row(31, 32)
def test_cuda_stream(backend: str, no_driver: None) -> None:
    for stream in (Stream(), Stream.null, Stream.ptds, ExternalStream(Stream.null.ptr)):
        answer = stream.__cuda_stream__()
        assert type(answer) is tuple and answer == (0, stream.ptr)
        assert all(isinstance(item, int) for item in answer)
    assert Stream.null.__cuda_stream__() == (0, 0)


def test_cuda_stream_is_refused_where_a_driver_would_use_it(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "cuda":
        pytest.skip("the handle is the driver's own there")
    monkeypatch.setattr(_interop, "cuda_driver_loadable", lambda: True)
    s = Stream()
    with pytest.raises(runtime.CUDARuntimeError) as info:
        s.__cuda_stream__()
    assert info.value.status == 801
    # Inside the runtime the number is not needed.
    assert Stream.from_external(s) == s


@pytest.mark.row(33)
def test_from_external(backend: str) -> None:
    s = Stream()
    owner = Owner((0, s.ptr))
    wrapper = Stream.from_external(owner)
    assert type(wrapper) is Stream
    assert (wrapper.ptr, wrapper.device_id) == (s.ptr, -1)
    assert wrapper._foreign_stream_ref is owner


@pytest.mark.row(34)
def test_from_external_of_an_own_stream(backend: str) -> None:
    s = Stream()
    ref, handle = weakref.ref(s), s.ptr
    wrapper = Stream.from_external(s)
    assert wrapper == s and wrapper is not s
    del s
    gc.collect()
    assert ref() is not None and wrapper.ptr == handle
    wrapper.synchronize(timeout=LIMIT)
    assert Stream.from_external(Stream.null) == Stream.null


@pytest.mark.row(35)
@pytest.mark.parametrize("wrong", [object(), None, 1])
def test_from_external_without_the_method(backend: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match="does not implement"):
        Stream.from_external(wrong)


@pytest.mark.row(36)
@pytest.mark.parametrize("answer", [123, (1,), (0, 1, 2), None])
def test_from_external_wrong_shape(backend: str, answer: Any) -> None:
    with pytest.raises(TypeError, match="must return a 2-tuple"):
        Stream.from_external(Owner(answer))


@pytest.mark.row(37)
@pytest.mark.parametrize("answer", [("a", 1), (0, "x"), (0, 1.5)])
def test_from_external_wrong_types(backend: str, answer: Any) -> None:
    with pytest.raises(TypeError, match=r"must return \(int, int\)"):
        Stream.from_external(Owner(answer))


@pytest.mark.row(38)
@pytest.mark.parametrize("version", [1, -1])
def test_from_external_wrong_version(backend: str, version: int) -> None:
    with pytest.raises(TypeError, match="unsupported version"):
        Stream.from_external(Owner((version, 0)))


def test_from_external_corners(backend: str) -> None:
    class Attribute:
        __cuda_stream__ = 5

    class Missing:
        def __cuda_stream__(self) -> Any:
            raise AttributeError("inner")

    class Failing:
        def __cuda_stream__(self) -> Any:
            raise KeyError("inner")

    with pytest.raises(TypeError, match="must return a 2-tuple"):
        Stream.from_external(Attribute())
    with pytest.raises(TypeError, match="does not implement"):
        Stream.from_external(Missing())
    with pytest.raises(KeyError, match="inner"):
        Stream.from_external(Failing())
    assert Stream.from_external(Owner([0, 7])).ptr == 7

    class Special(Stream):
        def __init__(self) -> None:
            raise AssertionError("not called")

    assert type(Special.from_external(Owner((0, 0)))) is Special


@pytest.mark.row(39)
def test_from_external_keeps_the_owner(backend: str) -> None:
    owner = Owner((0, 0))
    ref = weakref.ref(owner)
    wrapper = Stream.from_external(owner)
    del owner
    gc.collect()
    assert ref() is not None
    del wrapper
    gc.collect()
    assert ref() is None


@pytest.mark.row(40)
def test_from_external_stream_works(hold: Any) -> None:
    s = Stream()
    wrapper = Stream.from_external(Owner((0, s.ptr)))
    with wrapper:
        assert get_current_stream() is wrapper
        event = Event()
        gate = hold(s)
        event.record()
        assert not event.done and not wrapper.done
        gate.open()
        wrapper.synchronize(timeout=LIMIT)
        assert wrapper.done and event.done
    assert get_current_stream() is Stream.null


def test_unknown_device_skips_the_check(backend: str) -> None:
    s = Stream()
    wrapper = Stream.from_external(s)
    with cuda.Device(1):
        with wrapper:
            assert get_current_stream() is wrapper
        wrapper.use()
        assert get_current_stream() is wrapper
        with pytest.raises(RuntimeError):
            ExternalStream(s.ptr, 0).use()
    assert get_current_stream() is Stream.null
