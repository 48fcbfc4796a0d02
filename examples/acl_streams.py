"""The four ways of waiting that AscendCL has, through acl.rt, each proved by what it does.

The second copies memory. In the others a callback that waits for the host stands
in for the work of a device; a thread of the program runs the callbacks, as pyACL
wants it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from _proof import LIMIT, Proof
from halstream import acl

prove = Proof()
HOLD_THE_STREAM = 1
POLL_MS = 50


def made(result: tuple[int, int]) -> int:
    """Return the handle that a call made; its code must be 0."""
    handle, code = result
    assert code == acl.ACL_SUCCESS, code
    return handle


def well(*codes: int) -> bool:
    """Return True if every call said success."""
    return all(code == acl.ACL_SUCCESS for code in codes)


@contextmanager
def worker(*streams: int) -> Iterator[None]:
    """Run the callbacks of streams on a thread for the length of a block."""
    context = made(acl.rt.get_context())
    stop: list[bool] = []

    def loop(_: object) -> None:
        acl.rt.set_context(context)
        while not stop:
            acl.rt.process_report(POLL_MS)

    thread = made(acl.util.start_thread(loop, []))
    assert well(*(acl.rt.subscribe_report(thread, stream) for stream in streams))
    try:
        yield
    finally:
        assert well(*(acl.rt.unsubscribe_report(thread, stream) for stream in streams))
        stop.append(True)
        acl.util.stop_thread(thread)


def hold(stream: int) -> Callable[[], None]:
    """Keep a stream busy until the returned function is called."""
    go = threading.Event()
    assert well(acl.rt.launch_callback(lambda _: go.wait(LIMIT), [], HOLD_THE_STREAM, stream))
    return go.set


def recorded(event: int) -> bool:
    """Return True if what an event was recorded behind is done."""
    return made(acl.rt.query_event_status(event)) == acl.ACL_EVENT_RECORDED_STATUS_COMPLETE


def done(stream: int) -> bool:
    """Return True if a stream has nothing left to do."""
    return made(acl.rt.stream_query(stream)) == acl.ACL_STREAM_STATUS_COMPLETE


def wait_for_an_event() -> None:
    event = made(acl.rt.create_event_ex_with_flag(acl.ACL_EVENT_CAPTURE_STREAM_PROGRESS))
    stream = made(acl.rt.create_stream())
    with worker(stream):
        release = hold(stream)
        code = acl.rt.record_event(event, stream)
        prove("an event can be put at the end of a stream", well(code))
        later = hold(stream)
        prove("it is pending while the stream is", recorded(event) is False)
        codes: list[int] = []
        prove.blocks(
            "synchronize_event holds the program until the event happens",
            lambda: codes.append(acl.rt.synchronize_event(event)),
            lambda: not recorded(event),
            release,
        )
        prove("and says success", codes == [acl.ACL_SUCCESS] and recorded(event))
        prove("work put on the stream afterwards does not count", done(stream) is False)
        later()
        acl.rt.synchronize_stream(stream)
    prove(
        "stream and event are given back",
        well(acl.rt.destroy_stream(stream), acl.rt.destroy_event(event)),
    )


def wait_for_a_stream() -> None:
    stream = made(acl.rt.create_stream())
    values = bytes(range(256)) * 16
    size = len(values)
    source, target = made(acl.rt.malloc_host(size)), made(acl.rt.malloc_host(size))
    there = made(acl.rt.malloc(size, acl.ACL_MEM_MALLOC_HUGE_FIRST))
    kind = acl.ACL_MEMCPY_HOST_TO_HOST
    assert well(acl.rt.memcpy(source, size, acl.util.bytes_to_ptr(values), size, kind))
    assert well(acl.rt.memset(target, size, 0, size))
    with worker(stream):
        release = hold(stream)
        to_device, back = acl.ACL_MEMCPY_HOST_TO_DEVICE, acl.ACL_MEMCPY_DEVICE_TO_HOST
        copied = (
            acl.rt.memcpy_async(there, size, source, size, to_device, stream),
            acl.rt.memcpy_async(target, size, there, size, back, stream),
        )
        prove("copies are put on the stream they name", well(*copied) and not done(stream))
        untouched = acl.util.ptr_to_bytes(target, size) == bytes(size)
        prove("and the program goes on before they are done", untouched)
        codes: list[int] = []
        prove.blocks(
            "synchronize_stream holds the program until all tasks are done",
            lambda: codes.append(acl.rt.synchronize_stream(stream)),
            lambda: not done(stream),
            release,
        )
        prove("and says success", codes == [acl.ACL_SUCCESS] and done(stream))
        prove("the bytes are there then", acl.util.ptr_to_bytes(target, size) == values)
        wrong = acl.rt.memcpy_async(there, size - 1, source, size, to_device, stream)
        prove("more bytes than fit are refused by a code", wrong == acl.ACL_ERROR_RT_PARAM_INVALID)
    prove(
        "stream and memory are given back",
        well(
            acl.rt.destroy_stream(stream),
            acl.rt.free(there),
            acl.rt.free_host(source),
            acl.rt.free_host(target),
        ),
    )


def one_stream_waits_for_another() -> None:
    event = made(acl.rt.create_event_ex_with_flag(acl.ACL_EVENT_SYNC))
    s1, s2, s3 = (made(acl.rt.create_stream()) for _ in range(3))
    out: list[str] = []
    with worker(s1), worker(s2), worker(s3):
        release = hold(s1)
        acl.rt.launch_callback(out.extend, ["first"], HOLD_THE_STREAM, s1)
        prove("the event is recorded first", well(acl.rt.record_event(event, s1)))
        prove(
            "a stream waits for it, without holding the program",
            well(acl.rt.stream_wait_event(s2, event)) and not recorded(event),
        )
        prove("and so may another", well(acl.rt.stream_wait_event(s3, event)))
        for stream in (s2, s3):
            acl.rt.launch_callback(out.extend, ["second"], HOLD_THE_STREAM, stream)
        prove("both are held", not done(s2) and not done(s3) and not out)
        release()
        codes = [acl.rt.synchronize_stream(stream) for stream in (s2, s3)]
        prove("and go on when the event has happened", well(*codes) and recorded(event))
        prove("after the first stream's work", out == ["first", "second", "second"])
    prove(
        "all is given back",
        well(*(acl.rt.destroy_stream(s) for s in (s3, s2, s1)), acl.rt.destroy_event(event)),
    )


def wait_for_a_device() -> None:
    prove("a device is chosen", well(acl.rt.set_device(0)))
    s1, s2 = (made(acl.rt.create_stream()) for _ in range(2))
    with worker(s1), worker(s2):
        quick, slow = hold(s1), hold(s2)
        quick()
        codes: list[int] = []
        prove.blocks(
            "synchronize_device holds the program until every stream is done",
            lambda: codes.append(acl.rt.synchronize_device()),
            lambda: not done(s2),
            slow,
        )
        prove("and says success", codes == [acl.ACL_SUCCESS] and done(s1) and done(s2))
    prove(
        "streams and device are given back",
        well(acl.rt.destroy_stream(s2), acl.rt.destroy_stream(s1), acl.rt.reset_device(0)),
    )


if __name__ == "__main__":
    assert well(acl.init(), acl.rt.set_device(0))
    wait_for_an_event()
    wait_for_a_stream()
    one_stream_waits_for_another()
    wait_for_a_device()
    acl.rt.reset_device(0)
    acl.finalize()
    prove.end()
