"""Signals that come while the main thread waits for the device.

The waits look for signals by themselves once an hour: the handler, which lets the
device go on, runs only if a signal ends the sleep of the main thread.
"""

from __future__ import annotations

import pytest
from cuda_help import Program

SIGNALED = """
import ctypes, signal, threading, time
import halstream as hs
from halstream import _native
from halstream.testing import Gate
from look_alike import LIMIT, error, fault, until

handled = []  # no Event: a second signal within its method `set` would wait for its lock for ever

def on_signal(handler):
    def handle(number, frame):
        if not handled:
            handled.append(number)
            handler()
    signal.signal(signal.SIGUSR1, handle)

def interrupt():
    while not handled:  # a signal may come before the main thread sleeps
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        time.sleep(0.01)

def wait(function, *args, **kwargs):
    _native.wait_slice(3_600_000_000_000)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        return function(*args, **kwargs)
    finally:
        thread.join(LIMIT)
        assert handled

s = hs.Stream()
"""


@pytest.mark.parametrize(
    ("wait", "variables"),
    [
        pytest.param("s.synchronize", {}, id="stream"),
        pytest.param("s.synchronize, timeout=1000", {}, id="stream with a limit"),
        pytest.param("event.synchronize", {}, id="event"),
        pytest.param("blocking.synchronize", {}, id="event that sleeps at once"),
        pytest.param("hs.synchronize", {}, id="device"),
        # Without cuCtxRecordEvent a device's point consists of one for each stream.
        pytest.param("hs.synchronize", {"FAKECUDA_VERSION": "11020"}, id="device of an old driver"),
        # Here the host asks for the stream, not for an event behind its work.
        pytest.param("legacy.synchronize", {}, id="default stream"),
    ],
)
def test_a_signal_ends_the_sleep_of_a_wait(run_program: Program, wait: str, variables: dict[str, str]) -> None:
    run_program(
        SIGNALED
        + f"""
legacy = hs.Device(0).default_stream
gate = Gate(s)
other = Gate(legacy)
event, blocking = s.record(), hs.Event(blocking_sync=True)
blocking.record(s)
legacy.nop()
on_signal(lambda: (gate.open(), other.open()))
wait({wait})
assert gate.opened
""",
        **variables,
    )


def test_a_signal_ends_the_wait_for_functions_of_a_lost_device(run_program: Program) -> None:
    run_program(
        SIGNALED
        + """
# A native function of the lost device still works on memory of the program.
started, release = threading.Event(), threading.Event()

@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def native(argument):
    started.set()
    release.wait(LIMIT)

def lost():
    try:
        return other.query() is None
    except hs.DeviceLostError:
        return True

other = hs.Stream()
s.call_native(native, 0)
assert started.wait(LIMIT)
fault(other)
until(lost, "the loss")
on_signal(release.set)
exc = wait(error, s.synchronize)
assert type(exc) is hs.DeviceLostError and release.is_set(), exc
"""
    )
