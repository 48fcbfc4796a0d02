"""Current stream and current device of torch.cuda and torch.accelerator."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import halstream.torch as torch
import pytest
from halstream._core import _current, _interop
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
Hold = Callable[[Any], Any]


def in_thread(function: Callable[[], Any]) -> Any:
    """Run a function in a thread of its own and return what it gives."""
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(function()))
    thread.start()
    thread.join(LIMIT)
    assert seen, "the function raised or did not end"
    return seen[0]


def where() -> tuple[int, cuda.Stream, cuda.Stream]:
    """Everything that a context may change."""
    return cuda.current_device(), cuda.current_stream(0), cuda.current_stream(1)


@contextmanager
def unchanged() -> Iterator[None]:
    before = where()
    yield
    assert where() == before


@pytest.mark.row(1, 39)
def test_threads_and_devices_start_with_the_default_stream() -> None:
    def look() -> bool:
        return all(cuda.current_stream(d) == cuda.default_stream(d) for d in (None, 0, 1))

    assert look()
    with cuda.stream(cuda.Stream()), cuda.stream(cuda.Stream(device=1)):
        assert not look()
        assert in_thread(look) is True
        assert in_thread(cuda.current_device) == 0


@pytest.mark.row(3)
def test_a_context_makes_its_stream_current() -> None:
    s, inner = cuda.Stream(), cuda.Stream()
    before = cuda.current_stream()
    with cuda.stream(s) as given:
        assert given is None
        assert cuda.current_stream() == s
        assert cuda.current_stream() is s
        with cuda.stream(inner):
            assert cuda.current_stream() is inner
        with cuda.stream(s):
            assert cuda.current_stream() is s
        assert cuda.current_stream() is s
    assert cuda.current_stream() == before != s


@pytest.mark.row(4)
def test_no_stream_changes_nothing() -> None:
    s = cuda.Stream(device=1)
    with cuda.stream(s), unchanged():
        with cuda.stream(None) as given:
            assert given is None
            assert where() == (1, cuda.default_stream(0), s)
        cuda.set_stream(None)


def test_a_context_that_raises_restores() -> None:
    with unchanged(), pytest.raises(ZeroDivisionError), cuda.stream(cuda.Stream(device=1)):
        1 / 0  # noqa: B018
    with unchanged(), pytest.raises(ZeroDivisionError), cuda.Stream(device=1):
        1 / 0  # noqa: B018
    with unchanged(), pytest.raises(ZeroDivisionError), cuda.device(1):
        1 / 0  # noqa: B018


@pytest.mark.row(21)
def test_accelerator_and_cuda_see_the_same_current_stream() -> None:
    s = torch.Stream()
    torch.accelerator.set_stream(s)
    assert torch.accelerator.current_stream() is s
    assert type(cuda.current_stream()) is cuda.Stream
    assert cuda.current_stream().stream_id == s.stream_id
    other = cuda.Stream()
    cuda.set_stream(other)
    assert cuda.current_stream() is other
    assert type(torch.accelerator.current_stream()) is torch.Stream
    assert torch.accelerator.current_stream().stream_id == other.stream_id


@pytest.mark.row(22)
def test_a_device_out_of_range_has_no_current_stream() -> None:
    text = r"Device index value 2 is out of index range \[0, 2\)"
    for function in (torch.accelerator.current_stream, cuda.current_stream, cuda.default_stream):
        with pytest.raises(RuntimeError, match=text):
            function(torch.accelerator.device_count())


@pytest.mark.row(26)
def test_a_stream_is_a_context() -> None:
    with unchanged(), cuda.Stream() as s:
        assert isinstance(s, cuda.Stream)
        assert cuda.current_stream() is s


@pytest.mark.row(27)
def test_device_index_none_changes_nothing() -> None:
    with unchanged():
        with torch.accelerator.device_index(None) as given:
            assert given is None and torch.accelerator.current_device_index() == 0
        with torch.accelerator.device_index(1):
            assert torch.accelerator.current_device_index() == 1


@pytest.mark.row(41)
def test_a_context_on_another_device() -> None:
    s = cuda.Stream(device=1)
    with unchanged():
        with cuda.stream(s):
            assert where() == (1, cuda.default_stream(0), s)
        assert cuda.current_device() == 0


@pytest.mark.row(42)
def test_nested_contexts_across_devices() -> None:
    near, far, other = cuda.Stream(device=0), cuda.Stream(device=1), cuda.Stream(device=1)
    before = cuda.Stream(device=1)
    with cuda.device(1):
        cuda.set_stream(before)
    assert where() == (0, cuda.default_stream(0), before)
    with unchanged(), cuda.stream(near):
        assert where() == (0, near, before)
        with unchanged(), cuda.stream(far):
            assert where() == (1, near, far)
            with unchanged(), cuda.stream(cuda.default_stream(0)):
                assert where() == (0, cuda.default_stream(0), far)
            with unchanged(), cuda.stream(other):
                assert where() == (1, near, other)
        assert where() == (0, near, before)


def test_the_attributes_of_a_context() -> None:
    near, far = cuda.Stream(device=0), cuda.Stream(device=1)
    context = cuda.stream(far)
    assert isinstance(context, cuda.StreamContext)
    assert (context.stream, context.idx, context.src_prev_stream) == (far, 0, None)
    with cuda.stream(near), context:
        assert context.src_prev_stream is near
        assert context.dst_prev_stream == cuda.default_stream(1)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'device'"), cuda.stream(1):
        pass


def test_a_context_undoes_what_its_body_changes() -> None:
    s, other = cuda.Stream(), cuda.Stream(device=1)
    with unchanged(), cuda.stream(s):
        cuda.set_stream(other)
        assert where() == (1, s, other)
    with unchanged(), cuda.stream(s):
        cuda.set_device(1)


@pytest.mark.row(56)
def test_set_device_in_a_device_context_is_undone() -> None:
    context = cuda.device(0)
    with unchanged(), context as given:
        assert given is None
        cuda.set_device(1)
        assert cuda.current_device() == 1
    assert (context.idx, context.prev_idx) == (1, 0)


def test_a_device_context_changes_no_stream() -> None:
    s = cuda.Stream(device=1)
    with cuda.device(1):
        assert cuda.current_stream() == cuda.default_stream(1)
        cuda.set_stream(s)
    assert where() == (0, cuda.default_stream(0), s)
    for nothing in (None, -1):
        with cuda.device(nothing):
            assert cuda.current_device() == 0


@pytest.mark.row(61)
def test_contexts_do_not_touch_a_device_that_is_not_used(child: Callable[..., Any]) -> None:
    done = child(
        """
        from halstream import _native
        from halstream._core import _device
        from halstream.torch import cuda

        cuda.set_device(1)
        with cuda.device(1):
            s = cuda.Stream()
        with cuda.stream(s):
            s.record_event().synchronize()
        with s, cuda.device(1):
            cuda._sleep(1000)
        s.synchronize()
        assert _device.in_use == {1}, _device.in_use
        assert not _native.device_used(0) and _native.device_used(1)
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.row(63)
def test_setting_a_stream_sets_its_device() -> None:
    s = torch.Stream(device=1)
    torch.accelerator.set_stream(s)
    assert torch.accelerator.current_device_index() == 1
    assert torch.accelerator.current_stream() == s
    cuda.set_stream(cuda.Stream(device=0))
    assert cuda.current_device() == 0
    assert cuda.current_stream(1).stream_id == s.stream_id


def test_set_stream_takes_everything_with_three_parts() -> None:
    s = cuda.Stream(device=1)

    class Parts:
        stream_id, device_index, device_type = s.stream_id, s.device_index, s.device_type

    cuda.set_stream(Parts())
    assert cuda.current_device() == 1
    assert cuda.current_stream() == s
    for wrong in (1, "x", object()):
        with pytest.raises(AttributeError, match="has no attribute 'stream_id'"):
            cuda.set_stream(wrong)
    for wrong in (None, 1, "x"):
        with pytest.raises(TypeError, match=r"_accelerator_setStream.*incompatible function arguments"):
            torch.accelerator.set_stream(wrong)


@pytest.mark.row(65)
def test_accelerator_current_stream_takes_every_form_of_a_device() -> None:
    s = torch.Stream(device=1)
    torch.accelerator.set_stream(s)
    cuda.set_device(0)
    for device in (1, "cuda:1", torch.device("cuda:1")):
        assert torch.accelerator.current_stream(device) == s
    assert torch.accelerator.current_stream() == torch.accelerator.current_stream("cuda") != s
    for cpu in ("cpu", torch.device("cpu")):
        with pytest.raises(ValueError, match="cpu doesn't match the current accelerator cuda"):
            torch.accelerator.current_stream(cpu)


@pytest.mark.row(69)
def test_one_generic_stream_entered_again() -> None:
    s0, s1 = torch.Stream(), torch.Stream()
    current = torch.accelerator.current_stream
    with unchanged():
        with s0:
            assert current() is s0
            with s0:
                assert current() is s0
            assert current() is s0
            with s1:
                assert current() is s1
                with s0:
                    assert current() is s0
                assert current() is s1
            assert current() is s0
        assert current() == torch.accelerator.current_stream(0) != s0


@pytest.mark.row(70)
def test_generic_contexts_across_devices() -> None:
    near, far = torch.Stream(device=0), torch.Stream(device=1)
    with unchanged():
        with near, far:
            assert torch.accelerator.current_device_index() == 1
            assert torch.accelerator.current_stream(0) is near
            assert torch.accelerator.current_stream(1) is far
        assert torch.accelerator.current_device_index() == 0


def test_threads_that_enter_one_stream_do_not_disturb_each_other() -> None:
    s, barrier = torch.Stream(), threading.Barrier(2, timeout=LIMIT)

    def enter() -> bool:
        with s:
            barrier.wait()
            inside = torch.accelerator.current_stream() is s
            barrier.wait()
        barrier.wait()
        return inside and torch.accelerator.current_stream() != s

    seen: list[bool] = []
    threads = [threading.Thread(target=lambda: seen.append(enter())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert seen == [True, True]


@pytest.mark.row(79)
def test_the_current_stream_is_the_threads_own() -> None:
    s, set_there, looked = cuda.Stream(), threading.Event(), threading.Event()

    def other() -> None:
        cuda.set_stream(s)
        set_there.set()
        looked.wait(LIMIT)

    thread = threading.Thread(target=other)
    thread.start()
    assert set_there.wait(LIMIT)
    assert cuda.current_stream() == cuda.default_stream()
    looked.set()
    thread.join(LIMIT)


@pytest.mark.row(80)
def test_a_stream_context_sets_both_and_a_device_context_one() -> None:
    s = cuda.Stream(device=1)
    with unchanged(), cuda.stream(s):
        assert where() == (1, cuda.default_stream(0), s)
    with unchanged(), cuda.device(1):
        assert where() == (1, cuda.default_stream(0), cuda.default_stream(1))
    with unchanged(), cuda._DeviceGuard(1):
        assert cuda.current_device() == 1


@pytest.mark.row(82)
def test_the_cores_setter_can_leave_the_device() -> None:
    s = cuda.Stream(device=1)
    _current.set_stream(s, switch_device=False)
    assert where() == (0, cuda.default_stream(0), s)


@pytest.mark.row(83)
def test_external_streams_in_contexts_threads_and_on_devices(hold: Hold) -> None:
    handles = [_interop.new_raw(0), _interop.new_raw(1)]
    near = cuda.ExternalStream(handles[0], device=0)
    far = cuda.ExternalStream(handles[1], device=1)
    with unchanged(), cuda.stream(near):
        assert cuda.current_stream().cuda_stream == handles[0]
        with unchanged(), cuda.stream(far):
            assert where() == (1, near, far)
            assert in_thread(lambda: cuda.current_stream(1)) == cuda.default_stream(1)
    gate = hold(far)

    def use() -> bool:
        with cuda.stream(cuda.ExternalStream(handles[1], device=1)):
            event = cuda.Event()
            event.record()
            return event.query()

    assert in_thread(use) is False
    gate.open()
    far.synchronize()
    for handle in handles:
        _interop.close_raw(handle)


def test_raw_getters() -> None:
    s = cuda.Stream(device=1)
    with cuda.stream(s):
        assert torch._C._cuda_getCurrentRawStream(1) == s.cuda_stream
        assert torch._C._cuda_getCurrentRawStream(0) == 0
        assert torch._C._cuda_getCurrentStream(1) == (s.stream_id, 1, 1)


def test_a_stream_context_takes_one_stream_and_holds_it_while_it_lives() -> None:
    s = cuda.Stream()
    context = cuda.StreamContext(stream=s)
    assert context.stream is s
    with pytest.raises(TypeError):
        cuda.StreamContext()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cuda.StreamContext(s, s)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        context.__exit__()  # type: ignore[call-arg]
    with pytest.raises(IndexError):
        context.__exit__(None, None, None)
    alive = weakref.ref(context)
    context.itself = context
    del context
    gc.collect()
    assert alive() is None
