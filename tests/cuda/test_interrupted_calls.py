"""Ctrl-C while a call of the driver waits for a device that is held.

No signal ends a call of the driver, so such a call is made on another thread; what it makes is given
back when it returns after the caller was interrupted.
"""

from __future__ import annotations

import pytest
from cuda_help import Program

HEAD = """
import signal, threading, time
import numpy as np
import halstream as hs
from halstream import _memory, _native
from halstream.testing import Gate
from look_alike import LIMIT, PTX, Driver, until

driver = Driver()
_native.wait_slice(3_600_000_000_000)  # other waits look for signals by themselves once an hour

over = []  # that the call has ended, or that Ctrl-C has ended it
def once(number, frame):  # a second exception would come anywhere
    if not over:
        over.append(number)
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, once)

def interrupt_in(function, call):
    '''Make a call, interrupt it inside a function of the driver, and return whether that ended it.'''
    entered = driver.count(function)
    def interrupt():
        until(lambda: driver.count(function) > entered or over, function)
        while not over:  # a signal may come before the main thread sleeps
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.02)
    over.clear()
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        call()
        over.append(0)
    except KeyboardInterrupt:
        return True
    finally:
        thread.join(LIMIT)
    return False

fresh = hs.Kernel(PTX + "// another", name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
events = [hs.Event(timing=True) for _ in range(200)]
s = hs.Stream()
s.synchronize(timeout=LIMIT)
"""

CALLS = {
    "cuMemAllocFromPoolAsync": "hs.empty(100 << 20, np.uint8)",
    "cuMemHostAlloc": "hs.pinned_empty(100 << 20, np.uint8)",
    "cuMemGetInfo_v2": "_memory.memory_info()",
    "cuModuleLoadDataEx": "fresh.load()",
    "cuStreamCreateWithPriority": "[hs.Stream(priority=-2) for _ in range(200)]",
    "cuEventCreate": "[e.record(s) for e in events]",
}


@pytest.mark.parametrize(("function", "call"), CALLS.items())
def test_P2_a_call_that_waits_for_a_held_device_can_be_interrupted(
    run_program: Program, function: str, call: str
) -> None:
    run_program(
        HEAD
        + f"""
gate = Gate(s)
driver.control("drain {function} 1")
assert interrupt_in("{function}", lambda: {call})
gate.open()
s.synchronize(timeout=LIMIT)
driver.control("drain {function} 0")
""",
    )


@pytest.mark.parametrize(
    ("function", "kind", "given_back_by"),
    [
        ("cuMemAllocFromPoolAsync", "memory", "cuMemFreeAsync"),
        ("cuMemHostAlloc", "pinned", "cuMemFreeHost"),
        ("cuModuleLoadDataEx", "modules", "cuModuleUnload"),
    ],
)
def test_P2_what_an_interrupted_call_makes_is_given_back(
    run_program: Program, function: str, kind: str, given_back_by: str
) -> None:
    run_program(
        HEAD
        + f"""
gate = Gate(s)
driver.control("drain {function} 1")
alive, undone = driver.count("live.{kind}"), driver.count("{given_back_by}")
assert interrupt_in("{function}", lambda: {CALLS[function]})
gate.open()
until(lambda: driver.count("{given_back_by}") > undone, "the end of the call")
s.synchronize(timeout=LIMIT)
assert driver.count("live.{kind}") == alive
again = {CALLS[function]}  # the next one is not concerned
assert driver.count("live.{kind}") == alive + 1
"""
    )


def test_P2_a_call_returns_its_result_if_the_handler_does_not_raise(run_program: Program) -> None:
    run_program(
        HEAD
        + """
gate = Gate(s)
driver.control("drain cuMemHostAlloc 1")
signal.signal(signal.SIGUSR1, lambda number, frame: gate.open())  # runs while the call waits
entered = driver.count("cuMemHostAlloc")
def interrupt():
    until(lambda: driver.count("cuMemHostAlloc") > entered, "the call")
    while not gate.opened:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        time.sleep(0.02)
thread = threading.Thread(target=interrupt)
thread.start()
pinned = hs.pinned_empty(100 << 20, np.uint8)
thread.join(LIMIT)
pinned[:] = 1
assert pinned.nbytes == 100 << 20 and gate.opened
"""
    )


def test_P2_a_free_that_waits_for_a_held_device_does_not_stop_the_caller(run_program: Program) -> None:
    run_program(
        HEAD
        + """
big = _memory.DeviceMemory(100 << 20)
gate = Gate(s)
driver.control("drain cuMemFreeAsync 1")
alive, entered = driver.count("live.memory"), driver.count("cuMemFreeAsync")
big.free()  # called by the only thread that could open the gate
found = driver.count("cuMemFreeAsync") - entered, driver.count("live.memory") - alive
assert found == (1, 0), found
gate.open()
until(lambda: driver.count("live.memory") == alive - 1, "the end of the call")
"""
    )


def test_P2_the_process_ends_while_an_interrupted_call_is_in_the_driver(run_program: Program) -> None:
    done = run_program(
        HEAD
        + """
gate = Gate(s)
driver.control("drain cuMemHostAlloc 1")
assert interrupt_in("cuMemHostAlloc", lambda: hs.pinned_empty(100 << 20, np.uint8))
print("interrupted", flush=True)
""",
        FAKECUDA_CONTEXT_LOCK="1",
    )
    assert done.stdout == "interrupted\n"
