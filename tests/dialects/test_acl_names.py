"""Names, arguments and return values; the call sequences that programs are made of."""

from __future__ import annotations

import ctypes
import mmap
import signal
import threading

import numpy as np
import pytest
from acl_help import LIMIT, Call, core, device_0, finish, ok, streams
from halstream import acl
from halstream.acl import rt, util
from test_acl_callback import Loop

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]


@pytest.mark.row(78)
def test_arguments_are_positional_and_typed():
    (stream,) = streams(1)
    with pytest.raises(TypeError):
        rt.synchronize_stream(stream=stream)
    with pytest.raises(TypeError):
        rt.set_device(device=0)
    for call, args in (
        (rt.set_device, ("0",)),
        (rt.set_device, (0.0,)),
        (rt.set_device, (2**31,)),
        (rt.set_device, ()),
        (rt.set_device, (0, 0)),
        (rt.synchronize_stream, (float(stream),)),
        (rt.synchronize_stream, (None,)),
        (rt.record_event, (stream,)),
        (rt.create_event_with_flag, (1.0,)),
        (rt.synchronize_stream_with_timeout, (stream, 2**31)),
        (rt.set_stream_attribute, (stream, 3, [])),
    ):
        with pytest.raises(TypeError, match=rf"acl\.rt\.{call.__name__} args parse failed"):
            call(*args)
    with pytest.raises(TypeError, match=r"acl\.init args parse failed"):
        acl.init(5)
    # Functions without arguments ignore what they get, but keywords.
    assert rt.synchronize_device(1, 2) == 0
    with pytest.raises(TypeError):
        rt.create_stream(priority=0)
    # Handles are taken modulo 2**64.
    assert rt.synchronize_stream(stream - 2**64) == 0


def test_what_functions_return():
    stream, ret = rt.create_stream()
    assert type(stream) is int
    assert stream != 0
    assert ret == 0
    assert rt.device_get_stream_priority_range() == (7, 0, 0)
    assert type(rt.synchronize_stream(stream)) is int


@pytest.mark.row(80)
def test_names():
    for name in (
        "set_context",
        "get_context",
        "create_event_ex_with_flag",
        "set_op_execute_time_out",
        "process_report",
        "unsubscribe_report",
    ):
        assert callable(getattr(rt, name))
    assert not hasattr(rt, "set_current_context")
    added = {"launch_host_func", "stream_wait_event_with_timeout"}
    added |= {"stream_get_priority", "stream_get_flags"}
    for name in rt.__all__:
        doc = getattr(rt, name).__doc__
        assert ("(not in pyACL)" in doc) == (name in added), name
    assert rt.set_op_execute_time_out(5) == 0


def test_the_decorator_of_the_functions_is_private():
    for module in (acl, rt, util):
        assert not hasattr(module, "command")


def test_an_event_is_waited_for_by_the_host():
    assert acl.init() == 0
    ok(rt.set_device(0))
    event = ok(rt.create_event())
    stream = ok(rt.create_stream())
    ok(rt.record_event(event, stream))
    ok(rt.synchronize_event(event))
    ok(rt.destroy_stream(stream))
    ok(rt.destroy_event(event))
    ok(rt.reset_device(0))
    ok(rt.reset_device(0))
    assert acl.finalize() == 0


@pytest.mark.parametrize("sync_flag", [False, True])
def test_a_stream_waits_for_an_event_of_another(sync_flag):
    event = ok(rt.create_event_with_flag(1) if sync_flag else rt.create_event())
    first, second = streams(2)
    seen: list[str] = []
    for _ in range(3):
        core(first).call(seen.append, "first")
        ok(rt.record_event(event, first))
        ok(rt.stream_wait_event(second, event))
        if sync_flag:
            ok(rt.reset_event(event, second))
        core(second).call(seen.append, "second")
        finish(second)
    assert seen == ["first", "second"] * 3
    for stream in (first, second):
        ok(rt.destroy_stream(stream))
    ok(rt.destroy_event(event))


def test_a_device_is_waited_for():
    seen: list[int] = []
    core(0).call(seen.append, 1)
    ok(rt.synchronize_device())
    assert seen == [1]
    ok(rt.reset_device(0))


def test_a_thread_runs_callbacks():
    before = signal.getsignal(signal.SIGINT)
    loop = Loop()
    (stream,) = streams(1)
    seen: list[object] = []
    ok(rt.subscribe_report(loop.thread, stream))
    ok(rt.launch_callback(seen.append, ["data"], 1, stream))
    ok(rt.synchronize_stream(stream))
    ok(rt.unsubscribe_report(loop.thread, stream))
    loop.end()
    assert seen == [["data"]]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.row(82)
def test_other_threads_run_while_a_stream_is_synchronized(hold):
    (stream,) = streams(1)
    gate = hold(core(stream))
    started = threading.Event()

    def opener() -> int:
        started.wait(LIMIT / 1000)
        total = sum(range(10_000))
        gate.open()
        return total

    opening = Call(opener)
    started.set()
    assert rt.synchronize_stream(stream) == 0
    assert opening.result() == sum(range(10_000))


@pytest.mark.row(84)
def test_util():
    data = b"some bytes, with a \0 inside"
    pointer = util.bytes_to_ptr(data)
    assert util.ptr_to_bytes(pointer, len(data)) == data
    source = np.array([1, 2, 3, 4], np.float32)
    with pytest.warns(Warning, match="numpy_to_ptr"):
        address = util.numpy_to_ptr(source)
    with pytest.warns(Warning, match="ptr_to_numpy"):
        view = util.ptr_to_numpy(address, (4,), 11)
    assert view.dtype == np.float32
    assert view.tolist() == [1, 2, 3, 4]
    view[0] = 9
    assert source[0] == 9
    with pytest.raises(ValueError):
        util.bytes_to_ptr("text")

    def fail() -> None:
        raise KeyError("inside")

    thread = ok(util.start_thread(fail, None))
    with pytest.raises(RuntimeError, match="KeyError: 'inside'"):
        util.stop_thread(thread)
    assert util.stop_thread(thread) != 0


def test_pointers_that_no_memory_is_at_are_refused():
    page = mmap.PAGESIZE
    with mmap.mmap(-1, 3 * page) as pages:
        start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        refused = ((288, 7), (0, 16), (-8, 4), (2**63 - 4, 8), (2**64 + start, 8), (start, 2**62))
        for pointer, size in refused:
            with pytest.raises(ValueError, match="memory"):
                util.ptr_to_bytes(pointer, size)
            with pytest.warns(Warning, match="ptr_to_numpy"), pytest.raises(ValueError, match="memory"):
                util.ptr_to_numpy(pointer, (size,), 2)
        assert util.ptr_to_bytes(start, 3 * page) == bytes(3 * page)
    assert util.ptr_to_bytes(0, 0) == b""
    with pytest.raises(ValueError, match="size"):
        util.ptr_to_bytes(start, -1)
    for pointer, size in (("x", 1), (1.5, 1), (start, None)):
        with pytest.raises(TypeError, match="args parse failed"):
            util.ptr_to_bytes(pointer, size)
    with pytest.warns(Warning, match="ptr_to_numpy"), pytest.raises(ValueError, match="negative"):
        util.ptr_to_numpy(start, (-1, 4), 2)


def test_contiguous_copies():
    wide = np.arange(6).reshape(2, 3).T
    with pytest.warns(Warning, match="numpy_contiguous_to_ptr"):
        pointer, kept = util.numpy_contiguous_to_ptr(wide)
    assert kept.flags["C_CONTIGUOUS"]
    assert pointer == kept.ctypes.data
    with pytest.raises(ValueError):
        util.numpy_to_ptr([1])


def test_threads_keep_their_number_until_they_are_joined():
    done = threading.Event()
    first = ok(util.start_thread(done.set, None))
    assert done.wait(LIMIT / 1000)
    second = ok(util.start_thread(lambda: None, None))
    assert first != second
    assert util.stop_thread(second) == 0
    assert util.stop_thread(first) == 0


def test_constants():
    assert acl.ACL_SUCCESS == 0
    assert acl.ACL_EVENT_SYNC == 1
    assert acl.ACL_EVENT_RECORDED_STATUS_COMPLETE == 1
    assert acl.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT == 507046
    assert acl.ACL_ERROR_RT_EVENT_SYNC_TIMEOUT == 507047
    assert acl.ACL_ERROR_REPEAT_FINALIZE == 100037
    assert acl.ACL_ERROR_STREAM_CAPTURE_CONFLICT == 107032
    errors = {name for name in acl.__all__ if name.startswith("ACL_ERROR_")}
    # 213 codes, a second name for success, and ACL_ERROR, which is a level of the log.
    assert len({getattr(acl, name) for name in errors}) > 200


def test_app_log(caplog):
    assert acl.app_log(3, "text with % in it") is None
    assert caplog.messages == ["text with % in it"]
