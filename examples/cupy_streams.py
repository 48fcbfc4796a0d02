"""Streams and events as cupy.cuda has them, every call proved by what it does.

Work is stood in for by functions on streams; gates hold a stream where the
program has to look at it while something is pending.
"""

from __future__ import annotations

import gc
import threading

import halstream
from _proof import LIMIT, Proof
from halstream.cupy import cuda
from halstream.testing import Gate

prove = Proof()


def making_streams() -> None:
    plain = cuda.Stream()
    prove("a stream has a handle of its own", plain.ptr not in (0, cuda.Stream().ptr))
    prove("and knows its device", plain.device_id == cuda.Device().id)
    prove("null=True is the default stream", cuda.Stream(null=True) == cuda.Stream.null)
    prove("which has the handle 0", cuda.Stream.null.ptr == 0)
    per_thread = cuda.Stream(ptds=True)
    prove("ptds=True is the per-thread one", per_thread == cuda.Stream.ptds)
    prove("null wins over ptds", cuda.Stream(null=True, ptds=True).ptr == 0)
    devices = {cuda.Stream.null.device_id, cuda.Stream.ptds.device_id}
    prove("both stand for no device", devices == {-1})


def the_default_stream_orders() -> None:
    plain, free = cuda.Stream(), cuda.Stream(non_blocking=True)
    gate, free_gate = Gate(plain), Gate(free)
    mark = cuda.Stream.null.record()
    prove("the default stream waits for a plain stream", mark.done is False)
    gate.open()
    mark.synchronize()
    prove("and for no non-blocking one", mark.done and not free.done)
    free_gate.open()
    held = Gate(cuda.Stream.null)
    behind, beside = plain.record(), free.record()
    prove("a plain stream waits for the default stream", behind.done is False)
    beside.synchronize()
    prove("a non-blocking one does not", beside.done is True)
    held.open()
    behind.synchronize()
    prove("and goes on after it", behind.done is True)


def the_per_thread_stream() -> None:
    gate = Gate(cuda.Stream.ptds)
    here = cuda.Stream.ptds.record()
    seen: list[bool] = []

    def elsewhere() -> None:
        mark = cuda.Stream.ptds.record()
        mark.synchronize()
        seen.append(mark.done)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(LIMIT)
    prove("every thread has its own per-thread stream", seen == [True] and here.done is False)
    gate.open()
    cuda.Stream.ptds.synchronize()


def handles_end_with_their_streams() -> None:
    s, out = cuda.Stream(), []
    handle = s.ptr
    gate = Gate(s)
    s.launch_host_func(out.append, 1)
    mark = s.record()
    del s
    gc.collect()
    gate.open()
    mark.synchronize()
    prove("pending work of a dropped stream still runs", out == [1])
    halstream.synchronize()  # closes what was collected
    prove.raises(
        "its handle is destroyed with it",
        halstream.InvalidHandleError,
        halstream.Stream.from_handle,
        handle,
    )


def current_stream() -> None:
    s, t = cuda.Stream(), cuda.Stream()
    with s:
        prove("a with block makes the stream current", cuda.get_current_stream() == s)
        with t:
            prove("blocks nest", cuda.get_current_stream() == t)
        prove("and end in order", cuda.get_current_stream() == s)
    prove("after them the default stream is current", cuda.get_current_stream() == cuda.Stream.null)
    prove("use makes a stream current, too", s.use() is s and cuda.get_current_stream() == s)
    cuda.Stream.null.use()


def host_functions() -> None:
    s, out, data = cuda.Stream(), [], object()
    gate = Gate(s)
    s.launch_host_func(out.append, data)
    s.add_callback(lambda *args: out.append(args), data)
    prove("functions wait until the queued work is done", not out and not s.done)
    gate.open()
    s.synchronize()
    prove("launch_host_func gives its function the user's object", out[0] is data)
    prove("add_callback gives stream, status 0 and the object", out[1:] == [(s, 0, data)])


def record_and_wait() -> None:
    s, mine = cuda.Stream(), cuda.Event()
    gate = Gate(s)
    prove("record returns the event it was given", s.record(mine) is mine)
    fresh = s.record()
    prove("or a new one", isinstance(fresh, cuda.Event) and fresh is not mine)
    other, out = cuda.Stream(), []
    other.launch_host_func(out.append, "before")
    before = other.record()
    other.wait_event(mine)
    other.launch_host_func(out.append, "after")
    before.synchronize()
    prove("wait_event holds the work that comes later", out == ["before"] and not other.done)
    gate.open()
    other.synchronize()
    prove("until after the event", mine.done and out == ["before", "after"])


def synchronize_and_done() -> None:
    s = cuda.Stream()
    gate = Gate(s)
    prove("done is False while work is queued", s.done is False)
    prove.blocks("synchronize waits for all of it", s.synchronize, lambda: not s.done, gate.open)
    prove("done is True after that", s.done is True)


def comparisons() -> None:
    s, t = cuda.Stream(), cuda.Stream()
    same = cuda.Stream.from_external(s)
    prove("streams are equal when their handles are", (s == same, s != same) == (True, False))
    prove("and differ otherwise", (s == t, s != t) == (False, True))
    for name in ("__lt__", "__le__", "__gt__", "__ge__"):
        prove(f"{name} gives no order", getattr(s, name)(t) is NotImplemented)
    prove("the default stream has its text", repr(cuda.Stream.null) == "<Stream 0 (device -1)>")
    prove("and the per-thread one", repr(cuda.Stream.ptds) == "<Stream 2 (device -1)>")


if __name__ == "__main__":
    making_streams()
    the_default_stream_orders()
    the_per_thread_stream()
    handles_end_with_their_streams()
    current_stream()
    host_functions()
    record_and_wait()
    synchronize_and_done()
    comparisons()
    prove.end()
