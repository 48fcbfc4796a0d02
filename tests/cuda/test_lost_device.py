"""A device that is lost: everybody is told the first cause, soon, and nothing hangs."""

from __future__ import annotations

import pytest
from cuda_help import Program

#: Work of every kind that is pending on device 0 when a kernel loses it.
PENDING = """
import gc, sys, threading, time, weakref
import numpy as np
import halstream as hs
from halstream._core import _context
from halstream.testing import Gate
from look_alike import PTX, Driver, error, fault, until

driver = Driver()
told = []
sys.unraisablehook = lambda args: told.append((args.exc_type, args.err_msg))
class Thing:
    def __call__(self):
        ran.append(self)
ran, things = [], []
s, t, other = hs.Stream(), hs.Stream(), hs.Stream(1)
x, y = hs.zeros(1000, np.float32), hs.zeros(1000, np.float32)
event, limited = hs.Event(), hs.Event(timing=True)
gate = Gate(s)
fault(s)
def call(stream, method="call"):
    thing = Thing()
    things.append(weakref.ref(thing))
    getattr(stream, method)(thing)
event.record(s)
t.wait_event(event)
_context.wait_limited(t, event, 100.0)
for stream in (s, t):
    call(stream)
    call(stream, "call_checked")
    y.copy_from(x, stream)
    x.fill(2, stream)
    x.copy_from(np.ones(1000, np.float32), stream)
    stream.delay(0.001)
    call(stream)
behind = Gate(t)
limited.record(t)

errors = {}
def wait(name, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except BaseException as exc:
        errors[name] = type(exc).__name__, str(exc), getattr(exc, "code", None)
    else:
        errors[name] = None
target = np.zeros(1000, np.float32)
waits = {
    "stream": (s.synchronize,), "other stream": (t.synchronize,), "limit": (t.synchronize, 100.0),
    "event": (event.synchronize,), "second event": (limited.synchronize,), "device": (hs.synchronize,),
    "copy": (x.copy_to, target, s),
}
threads = [threading.Thread(target=wait, args=(name, *waits[name]), daemon=True) for name in waits]
for thread in threads:
    thread.start()
def lose():
    gate.open()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive(), errors
"""


def test_every_wait_ends_with_the_first_cause(run_program: Program) -> None:
    done = run_program(
        PENDING
        + """
lose()
assert set(errors) == set(waits)
for name, outcome in errors.items():
    assert outcome is not None, name
    kind, text, code = outcome
    assert kind == "DeviceLostError" and code == 700, (name, outcome)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text and "restart" in text, (name, outcome)
assert ran == [] and (target == 0).all()
"""
    )
    assert done.stderr == ""


def test_pending_work_of_a_lost_device_is_dropped_without_callbacks(run_program: Program) -> None:
    done = run_program(
        PENDING
        + """
lose()
until(lambda: not any(thing() for thing in things), "the end of the dropped functions")
assert ran == [] and told == [], (ran, told)
behind.open()
gate.open()
assert gate.opened and behind.opened
# Objects of a lost device can be closed, and collected, without a word.
s.close()
event.close()
del s, t, x, y, event, limited, behind, gate
gc.collect()
other.call(int)
other.synchronize(timeout=10)
assert told == [], told
"""
    )
    assert done.stderr == ""


def test_later_calls_fail_at_once_and_do_not_reach_the_driver(run_program: Program) -> None:
    run_program(
        PENDING
        + """
lose()
first = errors["stream"][1]
until(lambda: not any(thing() for thing in things), "the end of the dropped functions")
new = hs.Event()
before = -1
while driver.count("total") != before:  # the poller may look once more
    before = driver.count("total")
    time.sleep(0.15)
calls = {
    "query": s.query, "synchronize": s.synchronize, "record": s.record, "call": lambda: s.call(int),
    "gate": lambda: Gate(s), "wait": lambda: s.wait_stream(t), "wait event": lambda: t.wait_event(event),
    "stream": hs.Stream, "memory": lambda: hs.empty(10**7), "fill": lambda: x.fill(1, s), "copy": lambda: x.numpy(s),
    "from": lambda: x.copy_from(np.zeros(1000, np.float32), t), "launch": lambda: fault(s),
    "device": hs.synchronize, "event": event.synchronize, "event query": event.query, "delay": lambda: s.delay(0.1),
    "new event": lambda: new.record(s), "other device": lambda: other.wait_stream(s),
    "elapsed": lambda: limited.elapsed(limited), "handle": lambda: hs.Stream.from_handle(0x1234560),
    "limit": lambda: s.synchronize(timeout=1), "nop": s.nop, "own": lambda: hs.Device(0).per_thread_stream.nop(),
}
# Where pageable memory is, the driver is asked on the device that goes on.
asked = {"copy", "from"}
for name, call in calls.items():
    before = driver.count("total")
    exc = error(call)
    assert type(exc) is hs.DeviceLostError, (name, repr(exc))
    if name not in asked:
        assert driver.count("total") == before, (name, driver.count("total") - before)
    assert exc.code == 700 and "CUDA_ERROR_ILLEGAL_ADDRESS" in str(exc), (name, exc)
before = driver.count("total")
assert "lost" in s.describe() and hs.Device(0).name
assert driver.count("total") == before
"""
    )


def test_the_other_device_keeps_working(run_program: Program) -> None:
    run_program(
        PENDING
        + """
seen = []
mine = hs.zeros(1000, np.float32, device=1)
held = Gate(other)
other.call(seen.append, 1)
lose()
assert not other.query() and seen == []
mine.copy_from(np.arange(1000, dtype=np.float32), other)
held.open()
other.synchronize(timeout=10)
assert seen == [1] and (mine.numpy(other) == np.arange(1000)).all()
third = hs.Stream(1)
third.wait_stream(other)
double = hs.Kernel(PTX, name="scale_f32", signature="inout float32 *x, float32 a, uint32 n")
third.launch(double, 1, 1000, mine, 2.0, 1000)
assert (mine.numpy(third) == 2 * np.arange(1000)).all()
pinned = hs.pinned_empty(1000, np.float32)
pinned[:] = 3
mine.copy_from(pinned, other)
assert (mine.numpy(other) == 3).all()
hs.synchronize(1, timeout=10)
_ = hs.asarray(np.ones(10), device=1)
assert type(error(hs.synchronize, 0)) is hs.DeviceLostError
"""
    )


@pytest.mark.parametrize("ending", ["", "del s, t, x, y\ngc.collect()\n", "raise SystemExit\n", "lose()\n"])
def test_the_process_ends_as_usual(run_program: Program, ending: str) -> None:
    done = run_program(PENDING + ("gate.open()\n" if "lose" not in ending else "") + ending)
    assert done.stderr == ""


@pytest.mark.parametrize("code", [214, 700, 719])
def test_a_second_cause_does_not_hide_the_first(run_program: Program, code: int) -> None:
    run_program(
        f"""
        import halstream as hs
        from look_alike import Driver, error, fault, until
        s = hs.Stream()
        with hs.testing.Gate(s):
            fault(s, {code})
            fault(s, 715)
        exc = error(s.synchronize, timeout=10)
        assert type(exc) is hs.DeviceLostError and exc.code == {code}, repr(exc)
        Driver().control("poison 0 719")
        for call in (s.query, s.nop, hs.synchronize, hs.Stream):
            assert error(call).code == {code}
        """
    )
    # By a call, which is where most are noticed.
    run_program(
        f"""
        import halstream as hs
        from look_alike import Driver, error, until
        driver, s, ran = Driver(), hs.Stream(), []
        gate = hs.testing.Gate(s)
        s.call(ran.append, 1)
        driver.control("fault cuEventRecord +1 {code}")
        exc = error(s.record)
        assert type(exc) is hs.DeviceLostError and exc.code == {code} and "cuEventRecord" in str(exc), repr(exc)
        assert error(s.synchronize).code == {code} and ran == []
        """
    )


def test_dialects_raise_their_own_errors(run_program: Program) -> None:
    run_program(
        """
        import halstream as hs
        from halstream import cupy, paddle, torch
        from look_alike import fault
        s, t = torch.cuda.Stream(), cupy.cuda.Stream()
        p, event, other = paddle.device.Stream(), cupy.cuda.Event(), torch.cuda.Event()
        fault(hs.Stream.from_handle(s.cuda_stream))
        try:
            s.synchronize()
        except torch.AcceleratorError as exc:
            assert isinstance(exc, RuntimeError) and exc.error_code == 700, exc
            assert "illegal" in str(exc).lower(), exc
        else:
            raise AssertionError
        for call in (t.synchronize, t.record, event.record, cupy.cuda.Event, cupy.cuda.Device(0).synchronize):
            try:
                call()
            except cupy.cuda.runtime.CUDARuntimeError as exc:
                assert exc.status == 700 and "cudaErrorIllegalAddress" in str(exc), exc
            else:
                raise AssertionError(call)
        for call in (torch.cuda.synchronize, other.record, lambda: torch.cuda.current_stream().query()):
            try:
                call()
            except torch.AcceleratorError as exc:
                assert exc.error_code == 700, exc
            else:
                raise AssertionError(call)
        try:
            p.synchronize()
        except RuntimeError as exc:
            assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(exc) or "700" in str(exc), exc
        else:
            raise AssertionError
        with torch.cuda.device(1):
            torch.cuda.synchronize()
        """
    )


def test_a_device_lost_without_memory_operations(run_program: Program) -> None:
    run_program(
        PENDING + "lose()\nassert all(e and e[0] == 'DeviceLostError' for e in errors.values()), errors\n"
        "until(lambda: not any(thing() for thing in things), 'the end of the dropped functions')\n",
        FAKECUDA_MEMOPS="0",
    )


def test_a_wait_with_a_limit_that_a_stream_is_in_ends_with_the_loss(run_program: Program) -> None:
    run_program(
        """
import halstream as hs
from halstream._core import _context
from halstream.testing import Gate
from look_alike import LIMIT, error, fault, until

s, t, other = hs.Stream(), hs.Stream(), hs.Stream()
gate = Gate(s)
event = s.record()
_context.wait_limited(t, event, 1000.0)
until(lambda: "that need the host" not in t.describe(), "the wait with a limit")
fault(other)
for function in (t.synchronize, event.synchronize, hs.synchronize):
    assert type(error(function, timeout=LIMIT)) is hs.DeviceLostError
gate.open()
"""
    )
