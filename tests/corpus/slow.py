"""Programs that look like those in `stuck` and end by themselves, after about 1.4 s of real time.

In each something still moves, or somebody outside the runtime can still act: they
must end without any complaint. Sleeping is what they are for. None of their
waits has a limit, for a wait with one is never looked at.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import halstream as hs
from halstream.testing import Gate
from halstream.torch import cuda

from . import _slow_acl as ascend
from . import _slow_functions as functions
from . import _slow_host as host
from ._slow_help import SECONDS, after

__all__ = ["SLOW"]


def closed_gate() -> None:
    """A timer opens the gate."""
    stream = hs.Stream()
    gate = Gate(stream)
    timer = threading.Timer(SECONDS, gate.open)
    timer.start()
    stream.synchronize()
    timer.join()


def event_behind_gate() -> None:
    """A daemon thread opens the gate."""
    stream = cuda.Stream()
    gate = Gate(stream)
    event = stream.record_event()
    with after(gate.open, daemon=True):
        event.synchronize()


def device_with_gate() -> None:
    """One stream of the device has a long operation."""
    streams = [hs.Stream() for _ in range(3)]
    streams[1].delay(SECONDS)
    for stream in streams:
        stream.nop()
    hs.synchronize()


def across_streams() -> None:
    """A function that runs on a fourth stream opens the gate."""
    first, second, third, fourth = (cuda.Stream() for _ in range(4))
    gate = Gate(first)

    def work() -> None:
        time.sleep(SECONDS)
        gate.open()

    second.wait_stream(first)
    third.wait_event(second.record_event())
    fourth.call(work)
    third.synchronize()
    fourth.synchronize()


def legacy_order() -> None:
    """The handler of a signal from another process opens the gate."""
    held = hs.Stream()
    gate = Gate(held)
    before = signal.signal(signal.SIGUSR1, lambda *_: gate.open())
    send = f"import os, time; time.sleep({SECONDS}); os.kill({os.getpid()}, {int(signal.SIGUSR1)})"
    default = cuda.default_stream()
    default.nop()
    with subprocess.Popen([sys.executable, "-c", send]):
        default.synchronize()
    signal.signal(signal.SIGUSR1, before)


def second_host_thread() -> None:
    """The other thread's wait has a limit, after which it opens both gates."""
    mine, its = hs.Stream(), hs.Stream()
    gates = Gate(mine), Gate(its)

    def wait() -> None:
        try:
            its.synchronize(timeout=SECONDS)
        except hs.WaitTimeoutError:
            for gate in gates:
                gate.open()

    other = threading.Thread(target=wait, name="second host thread")
    other.start()
    mine.synchronize()
    other.join()
    its.synchronize()


SLOW: dict[str, Callable[[], None]] = {
    **{
        run.__name__: run
        for run in (
            closed_gate, event_behind_gate, device_with_gate, across_streams, legacy_order, second_host_thread,
        )
    },
    **functions.SLOW,
    **ascend.SLOW,
    **host.SLOW,
}  # fmt: skip
