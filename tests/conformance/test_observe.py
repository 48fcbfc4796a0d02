"""What can be seen from outside: descriptions, gates, events for other processes."""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream._records import decode

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_O1_a_trace_has_every_operation_with_its_stream_thread_and_version(hold: Hold) -> None:
    a, b, e, ran = hs.Stream(), hs.Stream(device=1), hs.Event(), []
    gate = hold(a)
    a.nop()  # before the trace
    with hs.testing.Trace() as trace:
        a.nop()
        a.record(e)
        b.wait(e)
        a.record(e)
        b.wait(a)
        b.call(ran.append, 1)
        thread = threading.Thread(target=a.nop)
        thread.start()
        thread.join(LIMIT)
        # Told when it is enqueued, not when it runs.
        assert ran == []
    a.nop()  # after it
    gate.open()
    b.synchronize(timeout=LIMIT)
    seen = trace.operations
    assert [op.kind for op in seen] == ["nop", "record", "wait", "record", "wait stream", "call", "nop"]
    assert [op.stream for op in seen] == [s.index for s in (a, a, b, a, b, b, a)]
    assert [op.device for op in seen] == [0, 0, 1, 0, 1, 1, 0]
    assert [op.version for op in seen] == [0, 1, 1, 2, 0, 0, 0]
    assert len({op.event for op in seen if op.kind in ("record", "wait")}) == 1
    assert seen[4].other == a.index
    assert [op.thread == seen[0].thread for op in seen] == [True] * 6 + [False]
    assert ran == [1]


def test_O1_refused_operations_are_not_reported() -> None:
    s, far = hs.Stream(), hs.Event(device=1)
    closed = hs.Stream()
    closed.close()
    with hs.testing.Trace() as trace:
        with pytest.raises(hs.WrongDeviceError):
            s.record(far)
        with pytest.raises(hs.ClosedError):
            closed.nop()
        s.query()
        s.synchronize(timeout=LIMIT)
    assert trace.operations == []


def test_O2_a_stream_reports_what_its_head_waits_for(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    assert "idle" in a.describe()
    gate = hold(a)
    for _ in range(3):
        a.nop()
    b.wait(a.record())
    assert "gate" in a.describe()
    assert "pending" in b.describe()
    gate.open()
    b.synchronize(timeout=LIMIT)
    assert "idle" in b.describe()


@pytest.mark.needs("reasons")
def test_O2_a_stream_that_waits_for_another_names_it(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    b.wait(a.record())
    assert "event" in b.describe()
    # The one that waits names the one it waits for.
    assert f"stream {a.index}" in b.describe()
    gate.open()


def test_O3_a_gate_holds_its_stream_until_it_is_opened(settle: Callable[[], None]) -> None:
    s, ran = hs.Stream(), []
    first, second = hs.testing.Gate(s), hs.testing.Gate(s)
    s.call(ran.append, 1)
    second.open()
    settle()
    assert not s.query()
    assert (first.opened, second.opened) == (False, True)
    first.open()
    first.open()
    s.synchronize(timeout=LIMIT)
    assert first.opened
    assert ran == [1]


def test_O3_a_gate_opens_when_its_context_is_left_also_by_an_exception() -> None:
    s = hs.Stream()
    with pytest.raises(ZeroDivisionError), hs.testing.Gate(s) as gate:
        assert not gate.opened
        1 / 0  # noqa: B018
    assert gate.opened
    s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize("wrong", [None, 1, "stream", object()])
def test_O3_a_gate_holds_its_stream(wrong: Any) -> None:
    with pytest.raises(TypeError):
        hs.testing.Gate(wrong)


def test_O4_interprocess_events_have_no_timing() -> None:
    s, e = hs.Stream(), hs.Event(interprocess=True)
    s.record(e)
    s.synchronize(timeout=LIMIT)
    assert e.query()
    both = hs.Event(interprocess=True, timing=True)
    with pytest.raises(hs.InvalidValueError):
        s.record(both)


def test_O1_a_trace_sees_every_operation_before_it_runs(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream(device=1)
    e = hs.Event()
    gate = hold(a)
    with hs.testing.Trace() as trace:
        a.nop()
        a.record(e)
        b.wait(e)
        a.record(e)
        b.wait(a)
        a.call(int)
        with pytest.raises(RuntimeError, match="in use"), trace:
            pass
    a.nop()  # no longer seen
    gate.open()
    seen = [(o.kind, o.device, o.stream, o.version, o.other) for o in trace.operations]
    assert seen == [
        ("nop", 0, a.index, 0, 0),
        ("record", 0, a.index, 1, 0),
        ("wait", 1, b.index, 1, 0),
        ("record", 0, a.index, 2, 0),
        ("wait stream", 1, b.index, 0, a.index),
        ("call", 0, a.index, 0, 0),
    ]
    assert len({o.thread for o in trace.operations}) == 1
    assert {o.event for o in trace.operations if o.kind in {"record", "wait"}} != {0}


def test_O1_refused_calls_are_not_seen() -> None:
    s, e = hs.Stream(), hs.Event(device=1)
    with hs.testing.Trace() as trace, pytest.raises(hs.WrongDeviceError):
        s.record(e)
    assert trace.operations == []


def test_O5_a_log_has_what_the_host_does_and_where(hold: Hold) -> None:
    from halstream import _native

    log = _native.trace_start()
    _native.positions(1)
    try:
        s = hs.Stream()
        with hold(s):
            e = s.record()
            assert not e.query()  # not told: it orders nothing
        e.synchronize(timeout=10)
        assert e.query() and s.query()
        s.close()
    finally:
        _native.positions(-1)
        operations = decode(_native.trace_take(log))
        _native.trace_stop(log)
    record = next(o for o in operations if o["kind"] == "record")
    # Streams and events that earlier tests left to the garbage collector may be closed meanwhile.
    host = [
        o["kind"]
        for o in operations
        if o["host"] and (o["stream"] == record["stream"] or o["event"] == record["event"])
    ]
    assert host == [
        "new stream", "new event", "synchronize event", "query event", "query stream", "close stream",
    ]  # fmt: skip
    own = [frame for frame in decode(_native.position_text(record["site"])) if frame["file"] == __file__]
    assert own[0]["function"].endswith("test_O5_a_log_has_what_the_host_does_and_where")
    assert "e = s.record()" in linecache.getline(__file__, own[0]["line"])


@pytest.mark.needs("times")
def test_O6_operations_report_when_they_ran(device: hs.Device) -> None:
    from halstream import _native

    log = _native.trace_start()
    _native.executed_start()
    try:
        a, b = hs.Stream(), hs.Stream()
        a.delay(0.001)
        b.wait(a.record())
        b.nop()
        b.synchronize(timeout=10)
        executed = decode(_native.executed_take())
    finally:
        _native.executed_stop()
        operations = decode(_native.trace_take(log))
        _native.trace_stop(log)
    times = {one["id"]: (one["began"], one["ended"]) for one in executed}
    of = {o["kind"]: times[o["id"]] for o in operations if not o["host"]}
    assert set(of) == {"delay", "record", "wait", "nop"}
    assert of["delay"][1] - of["delay"][0] >= 1_000_000
    assert of["delay"][1] <= of["record"][0] and of["record"][1] <= of["nop"][0]
