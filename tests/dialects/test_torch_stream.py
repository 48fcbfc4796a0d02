"""torch.Stream, torch.cuda.Stream and ExternalStream: making, naming, comparing."""

from __future__ import annotations

import copy
import ctypes
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import halstream as hs
import halstream.torch as torch
import pytest
from halstream._core import _interop
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
Hold = Callable[[Any], Any]


@contextmanager
def foreign_stream(device: int = 0) -> Iterator[int]:
    """A stream made through the runtime library, as a program without torch makes one."""
    handle = ctypes.c_void_p()
    with cuda.device(device):
        assert cuda.cudart().cudaStreamCreate(ctypes.addressof(handle)) == 0
    assert handle.value
    yield handle.value
    assert cuda.cudart().cudaStreamDestroy(handle.value) == 0


@pytest.mark.row(2)
def test_a_new_stream_is_not_the_default_stream() -> None:
    assert cuda.default_stream().cuda_stream == 0
    s = cuda.Stream()
    assert s.cuda_stream != 0
    assert s != cuda.default_stream()


@pytest.mark.row(5, 6)
def test_query_returns_whether_work_is_complete(hold: Hold) -> None:
    s = cuda.Stream()
    assert s.query() is True
    gate = hold(s)
    assert s.query() is False
    gate.open()
    s.synchronize()
    assert s.query() is True


@pytest.mark.row(6)
def test_sleep_keeps_the_current_stream_busy() -> None:
    s = cuda.Stream()
    for cycles in (200_000_000, 2_000_000_000, 10_000_000_000):  # the machine may be busy for longer than the first
        with cuda.stream(s):
            cuda._sleep(cycles)
        if not s.query():
            break
    else:
        pytest.fail("it does not keep the stream busy")
    assert cuda.current_stream().query() is True
    s.synchronize()
    assert s.query() is True


def test_sleep_takes_an_int_only() -> None:
    with pytest.raises(RuntimeError, match="expected 'int'"):
        cuda._sleep(1.5)  # type: ignore[arg-type]


@pytest.mark.row(7)
def test_repr_of_a_stream() -> None:
    s = cuda.Stream(device=1)
    assert repr(s) == f"<torch.cuda.Stream device=cuda:1 cuda_stream={s.cuda_stream:#x}>"
    assert repr(cuda.default_stream(0)) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
    external = cuda.ExternalStream(s.cuda_stream, device=1)
    assert repr(external) == repr(s)


@pytest.mark.row(8)
@pytest.mark.skipif(_interop.cuda_driver_loadable(), reason="a CUDA driver is loadable")
def test_cuda_stream_protocol() -> None:
    s = cuda.Stream()
    for stream in (s, cuda.ExternalStream(s.cuda_stream), cuda.default_stream()):
        assert stream.__cuda_stream__() == (0, stream.cuda_stream)


def test_cuda_stream_protocol_refuses_where_a_driver_would_take_the_number(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "cuda":
        pytest.skip("these streams are the driver's own")
    monkeypatch.setattr(_interop, "cuda_driver_loadable", lambda: True)
    with pytest.raises(RuntimeError, match=f"{backend} backend") as caught:
        cuda.Stream().__cuda_stream__()
    assert isinstance(caught.value, (torch.AcceleratorError, hs.NotSupportedError))


@pytest.mark.row(16)
def test_a_generic_stream_is_on_the_current_device() -> None:
    assert torch.Stream("cuda").device_index == cuda.current_device() == 0
    with cuda.device(1):
        assert torch.Stream("cuda").device_index == cuda.current_device() == 1


@pytest.mark.row(17)
def test_a_generic_stream_becomes_a_cuda_stream_by_its_three_parts(hold: Hold) -> None:
    s = torch.Stream(device=1)
    other = cuda.Stream(stream_id=s.stream_id, device_index=s.device_index, device_type=s.device_type)
    assert isinstance(other, torch.Stream) and type(other) is cuda.Stream
    assert (other.stream_id, other.device_index, other.device_type) == (s.stream_id, 1, 1)
    hold(s)
    assert other.query() is False


@pytest.mark.row(68)
def test_the_three_parts_of_a_generic_stream_make_it_again() -> None:
    for s in (torch.Stream(device=1), torch.accelerator.current_stream()):
        again = torch.Stream(stream_id=s.stream_id, device_index=s.device_index, device_type=s.device_type)
        assert again == s and hash(again) == hash(s)
        assert torch.Stream(s.stream_id, s.device_index, s.device_type) == s


def test_parts_that_name_no_stream_are_refused() -> None:
    with pytest.raises(RuntimeError, match="handle"):
        cuda.Stream(stream_id=12345, device_index=0, device_type=1)
    with pytest.raises(RuntimeError):
        cuda.Stream(stream_id=cuda.Stream().stream_id)
    with pytest.raises(TypeError):
        torch.Stream(1, 2)
    with pytest.raises(TypeError, match="bogus"):
        cuda.Stream(bogus=1)


@pytest.mark.row(43)
def test_a_stream_of_another_device_leaves_the_current_device() -> None:
    s = cuda.Stream(device=1)
    assert s.device == torch.device("cuda:1")
    assert cuda.current_device() == 0
    for where in ("cuda:1", torch.device("cuda", 1), cuda.device(1)):
        assert cuda.Stream(where).device_index == 1
    assert cuda.Stream(-1).device_index == cuda.Stream(None).device_index == 0


@pytest.mark.row(44)
def test_query_and_synchronize_leave_the_current_device(hold: Hold) -> None:
    s = cuda.Stream(device=1)
    gate = hold(s)
    assert s.query() is False
    gate.open()
    s.synchronize()
    assert s.query() is True
    assert cuda.current_device() == 0


@pytest.mark.row(45)
def test_default_streams_of_two_devices_differ() -> None:
    a, b = cuda.default_stream(0), cuda.default_stream(1)
    assert a.cuda_stream == b.cuda_stream == 0
    assert a != b


@pytest.mark.row(46, 77)
def test_two_objects_of_one_stream_are_equal() -> None:
    s = cuda.Stream()
    with cuda.stream(s):
        other = torch.Stream(s.stream_id, s.device_index, s.device_type)
    again = cuda.ExternalStream(s.cuda_stream)
    assert again == s and hash(again) == hash(s) and again is not s
    assert again.cuda_stream == s.cuda_stream == other.native_handle
    assert cuda.default_stream() == cuda.default_stream()
    assert len({s, again}) == 1


@pytest.mark.row(47, 78)
def test_priorities_are_clamped() -> None:
    least, greatest = cuda.Stream.priority_range()
    assert least == 0 and greatest < 0
    assert cuda.Stream(priority=least).priority == least
    assert cuda.Stream(priority=greatest).priority == greatest
    given = [cuda.Stream(priority=p).priority for p in (-1, -10, 0, 10, -(2**70))]
    assert given == [-1, greatest, 0, 0, greatest]
    assert torch.Stream(priority=-1).priority == -1
    with pytest.raises(TypeError):
        cuda.Stream(priority="high")  # type: ignore[arg-type]


@pytest.mark.row(53)
@pytest.mark.parametrize("device", [0, 1])
def test_an_external_stream_has_the_handle_it_was_given(device: int, hold: Hold) -> None:
    with foreign_stream(device) as handle:
        s = cuda.ExternalStream(handle, device=device)
        assert s.cuda_stream == handle
        assert s.device_index == device
        assert s.query() is True
        gate = hold(s)
        assert s.query() is False
        gate.open()
        s.synchronize()


@pytest.mark.row(54)
def test_an_external_stream_takes_a_device_context() -> None:
    with foreign_stream(1) as handle:
        assert cuda.ExternalStream(handle, device=cuda.device(1)).device_index == 1
        assert cuda.current_device() == 0


@pytest.mark.row(55)
def test_get_stream_from_external() -> None:
    with foreign_stream(1) as handle:
        s = cuda.get_stream_from_external(handle, 1)
        assert (s.cuda_stream, s.device_index) == (handle, 1)
        assert type(s) is cuda.Stream
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            cuda.get_stream_from_external(handle, "cpu")
        with pytest.raises(RuntimeError, match="Device index value 2 is out of index range"):
            cuda.get_stream_from_external(handle, 2)
    assert cuda.get_stream_from_external(0) == cuda.default_stream()


def test_handle_zero_is_the_default_stream() -> None:
    assert cuda.ExternalStream(0) == cuda.default_stream()
    assert cuda.ExternalStream(0, device=1) == cuda.default_stream(1)


def test_an_external_stream_is_checked_when_it_is_made() -> None:
    with foreign_stream(1) as handle:
        with pytest.raises(RuntimeError, match="lives on device 1, not 0"):
            cuda.ExternalStream(handle, device=0)
        with pytest.raises(RuntimeError, match="Priority was explicitly set"):
            cuda.Stream(1, priority=-1, stream_ptr=handle)
        gone = handle
    with pytest.raises(hs.InvalidHandleError):
        cuda.ExternalStream(gone, device=1)
    with pytest.raises(TypeError):
        cuda.ExternalStream("handle")  # type: ignore[arg-type]
    assert cuda.cudart().cudaStreamDestroy(gone) != 0


@pytest.mark.row(66)
@pytest.mark.parametrize("other", [42, "hello", 3.14, None, object()])
def test_a_stream_equals_no_other_object(other: Any) -> None:
    for s in (torch.Stream(), cuda.Stream(), torch.Stream("cpu")):
        assert (s == other) is False
        assert (s != other) is True
        assert (other == s) is False


@pytest.mark.row(67)
def test_streams_in_lists_and_without_order() -> None:
    s = torch.Stream()
    assert s in [1, None, s]
    with pytest.raises(TypeError, match="'<' not supported"):
        s < torch.Stream()  # type: ignore[operator]  # noqa: B015


def test_a_cuda_stream_equals_no_generic_stream() -> None:
    s = cuda.Stream()
    generic = torch.Stream(s.stream_id, s.device_index, s.device_type)
    assert (s == generic) is False
    assert (generic == s) is False


@pytest.mark.row(75)
def test_an_int_is_the_index_of_the_accelerator() -> None:
    s = torch.Stream(1)
    assert (s.device_index, s.device_type) == (1, 1)
    assert repr(s) == f"torch.Stream device_type=cuda, device_index=1, stream_id={s.stream_id}"
    with pytest.raises(RuntimeError, match="Device index must not be negative"):
        torch.Stream(-1)
    with pytest.raises(TypeError, match=r"argument 'device' .* must be torch.device, not float"):
        torch.Stream(1.5)


@pytest.mark.row(81)
def test_the_pool_gives_out_streams_in_turn() -> None:
    streams = [cuda.Stream() for _ in range(200)]
    assert len(set(streams)) == 32
    assert streams[0] == streams[32] and streams[0] != streams[31]
    urgent = [cuda.Stream(priority=-1) for _ in range(64)]
    assert len(set(urgent)) == 32
    assert not set(urgent) & set(streams)
    assert not {s.device for s in streams} & {cuda.Stream(1).device}


def test_streams_of_the_pool_share_their_work(hold: Hold) -> None:
    first, *between, again = [cuda.Stream() for _ in range(33)]
    gate = hold(first)
    assert again.query() is False
    assert all(s.query() for s in between)
    gate.open()
    again.synchronize()


def test_pool_streams_do_not_order_with_the_default_stream(hold: Hold) -> None:
    assert cuda.Stream().non_blocking
    hold(cuda.default_stream())
    s = cuda.Stream()
    s.nop()
    s.synchronize(timeout=LIMIT)
    assert not cuda.default_stream().query()


def test_a_foreign_stream_orders_with_the_default_stream(hold: Hold) -> None:
    with foreign_stream() as handle:
        s = cuda.ExternalStream(handle)
        gate = hold(cuda.default_stream())
        s.nop()
        assert s.query() is False
        gate.open()
        s.synchronize()


def test_attributes_are_read_only() -> None:
    for name in ("cuda_stream", "stream_id", "device_index", "device_type", "device", "priority"):
        with pytest.raises(AttributeError):
            setattr(cuda.Stream(), name, 1)


def test_ctypes_takes_a_stream() -> None:
    s = cuda.Stream()
    assert isinstance(s._as_parameter_, ctypes.c_void_p)
    assert s._as_parameter_.value == s.cuda_stream == s.native_handle
    assert cuda.default_stream()._as_parameter_.value is None


def test_copies_are_refused_and_weak_references_are_not() -> None:
    for thing in (cuda.Stream(), torch.Stream(), cuda.Event(), torch.Event()):
        name = type(thing).__name__
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"cannot pickle '{name}' object"):
                make(thing)
        assert weakref.ref(thing)() is thing


def test_subclasses_override_new() -> None:
    class Named(cuda.Stream):
        label: str

        def __new__(cls, label: str, **kwargs: Any) -> Named:
            new = super().__new__(cls, **kwargs)
            assert isinstance(new, cls)
            new.label = label
            return new

    s = Named("mine", device=1)
    assert (s.label, s.device_index, type(s)) == ("mine", 1, Named)
    with s:
        assert cuda.current_stream() is s
    plain = cuda.Stream()
    plain.note = "kept"  # type: ignore[attr-defined]
    assert isinstance(s.record_event(), cuda.Event)


def test_generic_streams_of_the_host() -> None:
    s = torch.Stream("cpu")
    assert repr(s) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    assert s.query() is True
    s.synchronize()
    assert s == torch.Stream("cpu") and s != torch.Stream()
    assert s.device == torch.device("cpu")
    with s as inside:
        assert inside is s and cuda.current_stream() == cuda.default_stream()
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
        s.record_event()
    with pytest.raises(RuntimeError, match="does not match recording stream's device type CPU"):
        torch.Event().record(s)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.set_stream(s)


def test_wrong_operands_of_stream_methods() -> None:
    s, generic = cuda.Stream(), torch.Stream()
    with pytest.raises(AttributeError, match="'int' object has no attribute 'record'"):
        s.record_event(1)
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'wait'"):
        s.wait_event(None)
    with pytest.raises(AttributeError, match="'str' object has no attribute 'record_event'"):
        s.wait_stream("s")
    for wrong in (1, "x", s):
        with pytest.raises(RuntimeError, match=r"expected event to be a torch.Event object"):
            generic.record_event(wrong)


@pytest.mark.row(35)
@pytest.mark.needs("unknown-handles")
def test_memory_for_a_stream_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RuntimeError):
        cuda.caching_allocator_alloc(8, stream=2**40 + 7)


def test_default_streams_of_devices_have_hashes_of_their_own() -> None:
    first, second = cuda.default_stream(0), cuda.default_stream(1)
    assert first != second and hash(first) != hash(second)
    assert hash(cuda.default_stream(1)) == hash(second)
