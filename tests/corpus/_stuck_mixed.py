"""Programs that never end because of native functions, or in circles of functions and streams."""

from __future__ import annotations

import ctypes
import threading

import halstream as hs
from halstream import acl
from halstream.testing import Gate
from halstream.torch import cuda

from ._acl import begin, made, ok
from ._host import LIMIT
from ._stuck_help import Stuck, hold, later, synchronize

LIBC = ctypes.CDLL(None)


def native_pause() -> None:
    """A native function waits for a signal that nobody sends."""
    stream = hs.Stream()
    stream.call_native(LIBC.pause)
    stream.synchronize()


def native_semaphore() -> None:
    """A native function waits for a semaphore that nobody posts."""
    stream, semaphore = hs.Stream(), ctypes.create_string_buffer(64)
    assert LIBC.sem_init(semaphore, 0, 0) == 0
    later.append(lambda: LIBC.sem_post(semaphore))
    stream.call_native(LIBC.sem_wait, semaphore)
    stream.synchronize()


def own_stream() -> None:
    """A function waits for what a later function of its own stream gives."""
    stream, given = hs.Stream(), threading.Event()
    later.append(given.set)
    stream.call(given.wait)
    stream.call(given.set)
    stream.synchronize()


def two_devices() -> None:
    """Functions on two devices wait, each for what stands behind the other one."""
    near, far, first, second = hs.Stream(0), hs.Stream(1), threading.Event(), threading.Event()
    later.append(first.set)
    near.call(first.wait)
    near.call(second.set)
    far.call(second.wait)
    far.call(first.set)
    near.synchronize()


def two_streams() -> None:
    """A function waits for one of a stream that waits for an event behind the first."""
    first, second, given = cuda.Stream(), cuda.Stream(), threading.Event()
    later.append(given.set)
    first.call(given.wait)
    second.wait_event(first.record_event())
    second.call(given.set)
    second.synchronize()


def self_wait() -> None:
    """A stream waits for an event that it records itself, further behind."""
    begin()
    stream, other = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    event = made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC))
    later.extend([lambda: ok(acl.rt.record_event(event, other)), lambda: ok(acl.rt.destroy_stream(stream))])
    ok(acl.rt.stream_wait_event(stream, event), acl.rt.record_event(event, stream))
    synchronize(stream)


def others_lock() -> None:
    """A function wants a lock held by a thread that waits for the function's stream."""
    stream, lock, held, enqueued = hs.Stream(), threading.RLock(), threading.Event(), threading.Event()

    def keep() -> None:
        with lock:
            held.set()
            enqueued.wait()
            try:
                stream.synchronize()
            except hs.StallError:
                go.wait()

    def work() -> None:
        with lock:
            pass

    go = threading.Event()
    other = threading.Thread(target=keep, name="keeper")
    later.extend([go.set, lambda: other.join(LIMIT)])
    other.start()
    held.wait()
    stream.call(work)
    enqueued.set()
    stream.synchronize()


def ended_thread_lock() -> None:
    """A function wants a lock that a thread took which has ended."""
    stream, lock = hs.Stream(), threading.Lock()
    other = threading.Thread(target=lock.acquire)
    other.start()
    other.join()
    later.append(lock.release)

    def work() -> None:
        with lock:
            pass

    stream.call(work)
    stream.synchronize()


def ended_thread_rlock() -> None:
    """The same with a lock that knows its owner."""
    stream, lock = hs.Stream(), threading.RLock()
    # The lock knows its owner by a number that the system gives again, with the memory of the stack. No thread with
    # a stack of the usual size gets that of a thread with a smaller one.
    usual = threading.stack_size(256 << 10)
    other = threading.Thread(target=lock.acquire, name="ended")
    other.start()
    threading.stack_size(usual)
    other.join()

    def work() -> None:
        with lock:
            pass

    stream.call(work)
    stream.synchronize()


def ended_thread_gate() -> None:
    """A thread closed a gate and ended without opening it."""
    stream, gates = hs.Stream(), []
    other = threading.Thread(target=lambda: gates.append(Gate(stream)))
    other.start()
    other.join()
    later.append(lambda: gates[0].open())
    stream.synchronize()


def behind_a_gate() -> None:
    """A function waits for another one, which stands behind a closed gate."""
    stream, other, done = hs.Stream(), hs.Stream(), threading.Event()
    hold(stream)
    stream.call(done.set)
    other.call(done.wait)
    other.synchronize()


STUCK: tuple[Stuck, ...] = (
    Stuck("own_stream", own_stream, ("waits for stream", "function", "waits in Event.wait()", "not by work behind it")),
    Stuck("two_devices", two_devices, ("device 0", "function", "Event.wait()", "device 1", "function", "Event.wait()")),
    Stuck("two_streams", two_streams, ("stream 2", "wait for event", "stream 1", "function", "Event.wait()")),
    Stuck("self_wait", self_wait, ("waits for stream", "event", "not recorded", "before it waits for it")),
    Stuck("others_lock", others_lock, ("waits for stream", "lock", "keeper", "thread keeper must release the lock")),
    Stuck("ended_thread_lock", ended_thread_lock, ("stream", "waits for a lock that is taken", "Release the lock")),
    Stuck("ended_thread_gate", ended_thread_gate, ("waits for stream", "gate", "closed", "Open the gate")),
    Stuck("behind_a_gate", behind_a_gate, ("waits for stream", "function", "Event.wait()", "gate", "Open the gate")),
)

#: Programs that cannot be told from slow ones under a deterministic schedule before its own limit,
#: or whose end needs more than to let go of what they wait for.
WATCHED: tuple[Stuck, ...] = (
    Stuck("native_pause", native_pause, ("waits for stream", "native function (pause)", "waits for a signal")),
    Stuck("native_semaphore", native_semaphore, ("waits for stream", "native function (sem_wait)", "waits for a lock")),
    Stuck("ended_thread_rlock", ended_thread_rlock, ("waits for stream", "a lock that a thread took which has ended")),
)
