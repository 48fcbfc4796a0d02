"""torch.Event and torch.cuda.Event: states, times, errors, order between streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.torch as torch
import pytest
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]

Hold = Callable[[Any], Any]
BOTH = pytest.mark.parametrize("make", [cuda.Event, torch.Event])


def generic(**kwargs: Any) -> Any:
    return torch.Event(**kwargs)


@pytest.mark.row(9)
@BOTH
def test_an_event_that_was_never_recorded_is_complete(make: Any) -> None:
    e = make()
    assert e.query() is True
    e.synchronize()
    e.wait()
    assert cuda.current_stream().query() is True


@pytest.mark.row(7)
def test_repr_of_an_event() -> None:
    e = cuda.Event()
    assert repr(e) == "<torch.cuda.Event uninitialized>"
    e.record()
    assert repr(e) == f"<torch.cuda.Event {e.cuda_event:#x}>"
    timed = torch.Event(enable_timing=True)
    assert repr(timed) == "torch.Event device_type=cuda, device_index=-1, event_flag=1, event_id=0"
    timed.record(torch.Stream(1))
    assert f"device_index=1, event_flag=1, event_id={timed.event_id}" in repr(timed)


@pytest.mark.row(10)
@BOTH
def test_an_event_behind_pending_work_is_pending(make: Any, hold: Hold) -> None:
    s, e = cuda.Stream(), make()
    gate = hold(s)
    e.record(s)
    assert e.query() is False
    gate.open()
    e.synchronize()
    assert e.query() is True


@pytest.mark.row(11)
@BOTH
def test_elapsed_time_around_a_sleep(make: Any) -> None:
    start, end = make(enable_timing=True), make(enable_timing=True)
    with cuda.stream(cuda.Stream()):
        start.record()
        cuda._sleep(5_000_000)
        end.record()
    end.synchronize()
    assert 5.0 <= start.elapsed_time(end) < 10_000.0
    assert end.elapsed_time(start) == -start.elapsed_time(end)


@pytest.mark.row(12)
def test_an_event_gets_its_handle_at_its_first_record() -> None:
    e = cuda.Event()
    assert e.cuda_event == e.event_id == 0
    assert e._as_parameter_.value is None
    e.record()
    first = e.cuda_event
    assert first == e.event_id == e._as_parameter_.value != 0
    e.record()
    assert e.cuda_event == first


@pytest.mark.row(13, 71)
@BOTH
def test_elapsed_time_needs_timing(make: Any) -> None:
    s, timed, plain = cuda.Stream(), make(enable_timing=True), make()
    for _ in range(2):  # before and after a record: this is the first check
        for pair in ((timed, plain), (plain, timed), (plain, plain)):
            with pytest.raises(ValueError, match="created with argument 'enable_timing=True'"):
                pair[0].elapsed_time(pair[1])
        timed.record(s)
        plain.record(s)
        s.synchronize()


@pytest.mark.row(14, 71)
@BOTH
def test_elapsed_time_needs_records(make: Any) -> None:
    a, b = make(enable_timing=True), make(enable_timing=True)
    a.record(cuda.Stream())
    for pair in ((a, b), (b, a), (b, b)):
        with pytest.raises(ValueError, match="must be recorded before calculating elapsed time"):
            pair[0].elapsed_time(pair[1])


@BOTH
def test_elapsed_time_of_pending_events(make: Any, hold: Hold) -> None:
    s, a, b = cuda.Stream(), make(enable_timing=True), make(enable_timing=True)
    a.record(s)
    gate = hold(s)
    b.record(s)
    for pair in ((a, b), (b, a)):
        with pytest.raises(RuntimeError, match="must be completed before") as caught:
            pair[0].elapsed_time(pair[1])
        assert not isinstance(caught.value, ValueError)
        assert isinstance(caught.value, torch.AcceleratorError)
    gate.open()
    b.synchronize()
    assert a.elapsed_time(b) >= 0


@pytest.mark.row(15)
def test_timing_is_off_by_default() -> None:
    s = cuda.Stream()
    for e in (cuda.Event(), torch.Event(), s.record_event(), torch.Stream().record_event()):
        e.record(s)
        s.synchronize()
        with pytest.raises(ValueError, match="enable_timing=True"):
            e.elapsed_time(e)


@pytest.mark.row(18)
def test_a_cuda_event_is_a_generic_event() -> None:
    assert issubclass(cuda.Event, torch.Event)
    assert isinstance(cuda.Event(), torch.Event)
    assert issubclass(cuda.Stream, torch.Stream)
    assert cuda.Stream.__module__.endswith("torch.cuda.streams")


@pytest.mark.row(19)
def test_ids_of_generic_events() -> None:
    a, b = torch.Event(), torch.Event()
    assert a.event_id == b.event_id == 0
    a.record()
    b.record()
    assert a.event_id and b.event_id and a.event_id != b.event_id


@pytest.mark.row(20)
@BOTH
def test_record_without_a_stream_takes_the_current_stream(make: Any, hold: Hold) -> None:
    s, e = cuda.Stream(), make()
    hold(s)
    e.record()
    e.synchronize()
    assert e.query() is True
    with cuda.stream(s):
        e.record()
    assert e.query() is False


@BOTH
def test_wait_without_a_stream_takes_the_current_stream(make: Any, hold: Hold) -> None:
    source, s, e = cuda.Stream(), cuda.Stream(), make()
    gate = hold(source)
    e.record(source)
    with cuda.stream(s):
        e.wait()
    assert s.query() is False
    assert cuda.current_stream().query() is True
    gate.open()
    s.synchronize()


@pytest.mark.row(40)
def test_the_device_of_an_event_is_that_of_its_first_record() -> None:
    e = cuda.Event()
    assert e.device is None
    e.record(cuda.Stream(device=1))
    assert e.device == torch.device("cuda:1")


@pytest.mark.row(73)
def test_the_device_of_a_generic_event() -> None:
    e = torch.Event(1)
    assert e.device == torch.device("cuda") and e.device.index is None
    assert e.event_id == 0
    e.record(torch.Stream(1))
    assert e.device == torch.device("cuda:1")
    assert e.event_id != 0


@pytest.mark.row(50)
@BOTH
def test_query_and_synchronize_from_any_device(make: Any, hold: Hold) -> None:
    s, e = cuda.Stream(device=1), make()
    gate = hold(s)
    e.record(s)
    assert cuda.current_device() == 0
    assert e.query() is False
    gate.open()
    e.synchronize()
    assert e.query() is True
    assert cuda.current_device() == 0


@pytest.mark.row(51)
@BOTH
def test_elapsed_time_and_devices(make: Any) -> None:
    a, b, c = (make(enable_timing=True) for _ in range(3))
    far = cuda.Stream(device=1)
    a.record(far)
    b.record(far)
    c.record(cuda.Stream(device=0))
    cuda.synchronize(0)
    cuda.synchronize(1)
    assert a.elapsed_time(b) >= 0
    with pytest.raises(RuntimeError) as caught:
        a.elapsed_time(c)
    assert not isinstance(caught.value, ValueError)


@pytest.mark.row(52)
def test_a_bound_event_is_refused_on_another_device() -> None:
    near, far = cuda.Stream(device=0), cuda.Stream(device=1)
    e = near.record_event()
    text = "Event device 0 does not match recording stream's device 1"
    with pytest.raises(RuntimeError, match=text):
        e.record(far)
    with pytest.raises(RuntimeError, match=text):
        far.record_event(e)
    with cuda.device(1), pytest.raises(RuntimeError, match=text):
        e.record()  # the current stream of the current device, not of the event's
    e.wait(far)
    other = torch.Event()
    other.record(near)
    with pytest.raises(RuntimeError, match="index 0 does not match recording stream's device index 1"):
        other.record(far)
    assert isinstance(caught_wrong_device(e, far), hs.WrongDeviceError)


def caught_wrong_device(event: Any, stream: Any) -> BaseException:
    with pytest.raises(RuntimeError) as caught:
        event.record(stream)
    return caught.value


@pytest.mark.row(72)
def test_wrong_operands_of_event_methods() -> None:
    for wrong in (1, -1, "x", object(), 1.5, cuda.Event()):
        for e in (cuda.Event(), torch.Event()):
            for method in (e.record, e.wait):
                with pytest.raises(RuntimeError, match=r"expected stream to be a .* object"):
                    method(wrong)
    for wrong in (None, 1, "x", object(), cuda.Stream()):
        with pytest.raises(RuntimeError, match=r"expected other to be a torch.cuda.Event object"):
            cuda.Event().elapsed_time(wrong)
        with pytest.raises(RuntimeError, match=r"expected other to be a torch.Event object"):
            torch.Event().elapsed_time(wrong)


@pytest.mark.row(74)
@BOTH
def test_many_streams_wait_for_one_event_and_it_is_recorded_again(
    make: Any, hold: Hold, settle: Callable[[], None]
) -> None:
    source, e = cuda.Stream(), make()
    waiters = [cuda.Stream(device=i % 2) for i in range(4)]
    first = hold(source)
    e.record(source)
    for s in waiters:
        s.wait_event(e)
    second = hold(source)
    e.record(source)
    settle()
    assert [s.query() for s in waiters] == [False] * 4
    first.open()
    for s in waiters:
        s.synchronize()
    assert e.query() is False
    second.open()
    e.synchronize()
    assert e.query() is True


@pytest.mark.row(49, 76)
@pytest.mark.parametrize("device", [0, 1])
def test_wait_event_and_wait_stream_order_work(device: int, hold: Hold, settle: Callable[[], None]) -> None:
    ran: list[str] = []
    source, by_event, by_stream = cuda.Stream(0), cuda.Stream(device), torch.Stream(device)
    gate = hold(source)
    source.call(ran.append, "source")
    by_event.wait_event(source.record_event())
    by_event.call(ran.append, "waiter")
    by_stream.wait_stream(source)
    by_stream.call(ran.append, "waiter")
    settle()
    assert ran == []
    gate.open()
    for s in (by_event, by_stream):
        s.synchronize()
        assert s.query() is True
    assert ran == ["source", "waiter", "waiter"]


def test_only_work_before_a_wait_stream_is_waited_for(hold: Hold) -> None:
    a, b = cuda.Stream(), cuda.Stream()
    b.wait_stream(a)
    hold(a)
    b.nop()
    b.synchronize(timeout=10)
    b.wait_stream(b)
    b.synchronize(timeout=10)
    assert a.query() is False


def test_record_event_gives_the_event_back() -> None:
    s, e = cuda.Stream(), cuda.Event()
    assert s.record_event(e) is e
    new = s.record_event()
    assert type(new) is cuda.Event and new.device == s.device
    assert type(torch.Stream().record_event()) is torch.Event
    generic_event = torch.Event()
    assert s.record_event(generic_event) is generic_event


@pytest.mark.row(84)
def test_an_event_keeps_its_handle_when_its_name_changes() -> None:
    e = cuda.Event()
    e.record()
    handle = e.cuda_event
    holder = [e]
    del e
    moved = holder.pop()
    moved.record()
    assert moved.cuda_event == handle


def test_events_compare_by_identity() -> None:
    s = cuda.Stream()
    a, b = s.record_event(), s.record_event()
    assert a == a and a != b and len({a, b}) == 2 and a != 1


def test_flags_of_a_cuda_event() -> None:
    cuda.Event(True, True, True, True)
    cuda.Event(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'NoneType' object cannot be interpreted as an integer"):
        cuda.Event(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        cuda.Event(blocking=1.5)  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="unsigned byte integer is less than minimum"):
        cuda.Event(-1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        cuda.Event(True, True, True, True, True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="bogus"):
        cuda.Event(bogus=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"argument 'enable_timing' must be bool, not int"):
        torch.Event(enable_timing=1)  # type: ignore[arg-type]


def test_attributes_of_an_event_are_read_only() -> None:
    for name in ("device", "cuda_event", "event_id"):
        with pytest.raises(AttributeError):
            setattr(cuda.Event(), name, 1)


@pytest.mark.needs("processes")
def test_handles_for_other_processes_are_of_cuda_events_made_for_it() -> None:
    event = cuda.Event(interprocess=True)
    handle = event.ipc_handle()
    assert isinstance(handle, bytes) and len(handle) == 64 and event.ipc_handle() == handle
    assert event.device == torch.device("cuda", 0)
    with pytest.raises(RuntimeError, match="this process has made the handle"):
        cuda.Event.from_ipc_handle(0, handle)
    with pytest.raises(RuntimeError, match="made for this process alone"):
        cuda.Event().ipc_handle()
    with pytest.raises(RuntimeError, match="of size 64, but got 3"):
        cuda.Event.from_ipc_handle(0, b"abc")
    with pytest.raises(RuntimeError, match="can only be created on CUDA devices"):
        cuda.Event.from_ipc_handle("cpu", bytes(64))
    with pytest.raises(RuntimeError, match="no handle of an event"):
        cuda.Event.from_ipc_handle(0, bytes(64))
    with pytest.raises(NotImplementedError, match=r"torch.Event ipc is not supported yet"):
        torch.Event().ipc_handle()


def test_events_of_the_host_are_never_recorded() -> None:
    e = torch.Event("cpu")
    assert repr(e) == "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"
    assert e.query() is True
    e.synchronize()
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
        e.record()
    with pytest.raises(ValueError):
        e.elapsed_time(e)
