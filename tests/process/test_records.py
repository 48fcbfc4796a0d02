"""The records between Go and Python: what the calls return is what the classes say that the build makes."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream import _native, _record_types, _records

PYBUILD = Path(__file__).parents[2] / "pybuild"


def is_record(of: Any) -> bool:
    base = _record_types.TypedDict
    return isinstance(of, type) and issubclass(of, base) and of is not base


def test_the_prefix_of_errors_is_the_one_that_c_writes() -> None:
    prefix = f'"{_records.ERROR_PREFIX}'
    assert prefix in (PYBUILD.parent / "buildsupport" / "pybindgen.py").read_text(encoding="utf-8")


def check(value: Any, of: Any) -> None:
    """Fail unless a decoded value has a type, and a record exactly its fields."""
    origin, args = typing.get_origin(of), typing.get_args(of)
    if is_record(of):
        hints = typing.get_type_hints(of)
        assert set(value) == set(hints)
        for field, kind in hints.items():
            check(value[field], kind)
    elif origin is list:
        assert type(value) is list
        for one in value:
            check(one, args[0])
    elif origin in (typing.Union, types.UnionType):
        if value is not None:
            check(value, args[0])
    else:
        assert type(value) is of, f"{value!r} is no {of}"


def test_an_error_is_an_error_record(backend: str) -> None:
    del backend
    s = hs.Stream()
    with pytest.raises(RuntimeError) as caught:
        _native._load().pybuild_StreamQuery(s._id + 1)
    prefix, found, text = str(caught.value).partition(_records.ERROR_PREFIX)
    assert prefix == "" and found
    record = _records.decode(text)
    check(record, _records.ErrorRecord)
    assert record["kind"] == "invalid_handle" and record["operation"] and record["text"]
    with pytest.raises(hs.HalError) as translated:
        _native.stream_query(s._id + 1)
    assert str(translated.value) == record["text"]


def test_a_stack_is_frame_records_whatever_its_names_hold(backend: str) -> None:
    del backend
    file = 'a "quoted" \\ name\nwith \x07 and ä.py'
    program: dict[str, Any] = {}
    exec(compile("def make():\n    return hs.Stream()\n", file, "exec"), {"hs": hs}, program)
    _native.positions(1)
    try:
        log = _native.trace_start()
        try:
            program["make"]()
            operations = _records.decode(_native.trace_take(log))
        finally:
            _native.trace_stop(log)
        frames = _records.decode(_native.position_text(operations[0]["site"]))
    finally:
        _native.positions(-1)
    for frame in frames:
        check(frame, _records.FrameRecord)
    assert {"file": file, "line": 2, "function": "make"} in frames
    assert len(frames) > 2


def test_logs_and_times_are_lists_of_records(backend: str) -> None:
    del backend
    log = _native.trace_start_timed()
    try:
        assert _records.decode(_native.trace_take(log)) == []
        a, b = hs.Stream(), hs.Stream()
        block = hs.zeros(64, "uint8", stream=a)
        b.wait(a.record())
        b.wait(a)
        block.fill(1, b)
        b.call(int)
        b.synchronize(timeout=10)
        operations = _records.decode(_native.trace_take(log))
    finally:
        _native.trace_stop(log)
    check(operations, list[_records.OperationRecord])
    fill = [o for o in operations if o["kind"] == "fill"][-1]
    assert fill["writes"] == [{"start": block.ptr, "size": 64}] and fill["reads"] == []
    assert fill["time"] > 0 and not fill["host"]
    assert any(o["host"] for o in operations) and any(o["token"] for o in operations)


@pytest.mark.needs("times")
def test_executions_are_records(device: hs.Device) -> None:
    del device
    log = _native.trace_start_timed()  # operations have numbers only where somebody listens
    _native.executed_start()
    try:
        s = hs.Stream()
        s.nop()
        s.synchronize(timeout=10)
        executed = _records.decode(_native.executed_take())
    finally:
        _native.executed_stop()
        _native.trace_stop(log)
    check(executed, list[_records.ExecutionRecord])
    assert executed and all(one["began"] <= one["ended"] for one in executed)


@pytest.mark.needs("stalls")
def test_what_is_pending_is_records(device: hs.Device, hold: Callable[[hs.Stream], Any]) -> None:
    del device
    assert _records.decode(_native.stall_waits()) == []
    s, other = hs.Stream(), hs.Stream()
    with hold(s):
        other.wait(s)
        streams = _records.decode(_native.stall_graph())
    other.synchronize(timeout=10)
    check(streams, list[_records.BusyRecord])
    assert any(one["on"] for one in streams)


def test_reports_of_the_checker_are_records(backend: str) -> None:
    with hs.sanitize(on="collect"):
        a, b, x = hs.Stream(), hs.Stream(), hs.empty(64, "uint8")
        x.fill(1, stream=a)
        b.wait(hs.Event())
        x.fill(2, stream=b)
        findings = _records.decode(_native.check_take(0))
        made = _records.decode(_native.check_made())
        counts = _records.decode(_native.check_stats())
        hs.synchronize()
    check(findings, list[_records.FindingRecord])
    check(made, list[_records.MadeRecord])
    check(counts, _records.CheckRecord)
    (found,) = findings
    assert found["range"] == {"start": x.ptr, "size": 64} and found["first"]["size"] == 64
    assert {one["kind"] for one in made} == {"stream", "memory"} and counts["reports"] == 1


def test_what_is_alive_is_records(backend: str) -> None:
    handle = _native.leaks_start()
    try:
        s, block = hs.Stream(), hs.empty(64, "uint8")
        alive = _records.decode(_native.leaks_take(handle))
    finally:
        _native.leaks_stop(handle)
    check(alive, list[_records.ObjectRecord])
    assert {"stream", "memory"} <= {one["kind"] for one in alive}
    found = _records.decode(_native.mem_lookup(block.ptr))
    check(found, _records.BlockRecord)
    assert found["device"] == 0 and _native.mem_kind(block.ptr) == found["kind"] == 2
    s.close()


@pytest.mark.needs("schedules")
def test_what_a_run_did_is_records(device: hs.Device) -> None:
    del device
    _native.schedule_set("fifo")
    try:
        s = hs.Stream()
        s.nop()
        s.synchronize()
        steps = _records.decode(_native.schedule_order())
        calls = _records.decode(_native.schedule_calls())
    finally:
        _native.schedule_set("parallel")
    check(steps, list[_records.StepRecord])
    check(calls, list[_records.CallRecord])
    assert any(one["call"] for one in steps) and any(not one["call"] for one in steps)
    assert {"kind": "nop", "stream": 1, "thread": 1} in calls


def test_what_may_still_act_is_records(backend: str) -> None:
    del backend
    hs.Stream().synchronize()
    check(_records.decode(_native.stall_state()), _records.StateRecord)
    check(_records.decode(_native.stall_threads("[]")), list[_records.ThreadRecord])
    reasons = _records.decode(_native.backend_passed())
    assert type(reasons) is list and all(type(one) is str for one in reasons)


def test_no_control_character_separates_values() -> None:
    wrong = re.compile(r"\\x(?:0[0-8bcef]|1[0-9a-f])|\\u00(?:0[0-8bcef]|1[0-9a-f])|[\x00-\x08\x0b\x0c\x0e-\x1f]", re.I)
    sources = [
        *(path for path in PYBUILD.iterdir() if path.suffix in (".go", ".c", ".h") and "_test" not in path.name),
        *(PYBUILD.parent / "python" / "halstream").rglob("*.py"),
    ]
    assert len(sources) > 100
    found = [f"{path.name}: {match[0]!r}" for path in sources for match in wrong.finditer(path.read_text("utf-8"))]
    assert found == []
