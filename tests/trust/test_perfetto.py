"""What a log becomes as a trace, read back with Perfetto's own messages."""

from __future__ import annotations

import math
from typing import Any

import halstream as hs
import pytest
from halstream._cli import script as _script
from halstream._records import ExecutionRecord, OperationRecord
from halstream._traces.perfetto import build
from perfetto_help import Trace
from record_help import operation, stack_text

COUNT, BYTES = 2, 3  # units of counters in the schema


class Log:
    """A log that a test writes."""

    def __init__(self) -> None:
        self.operations: list[OperationRecord] = []
        self.executed: list[ExecutionRecord] = []

    def add(self, kind: str, time: int, ran: tuple[int, int] | None = None, **fields: Any) -> int:
        """Add an operation and, if it ran, when; return its number."""
        number = len(self.operations) + 1
        token = 7 if kind == "call" else 0
        self.operations.append(operation(number, kind, time=time, token=token, **fields))
        if ran:
            self.executed.append({"id": number, "began": ran[0], "ended": ran[1]})
        return number

    def trace(self, sites: dict[int, str] | None = None, timed: bool = True) -> Trace:
        """Build the trace and read it back, checked."""
        trace = Trace(
            build(self.operations, self.executed if timed else None, lambda site: (sites or {}).get(site, ""))
        )
        trace.check()
        return trace


@pytest.fixture
def log() -> Log:
    return Log()


def spans(trace: Trace, track: str) -> list[tuple[str, int, float]]:
    """Name, begin and end of what is on a track."""
    return [(s.name, s.begin, s.end) for s in trace.on(track)]


# -- the conversion, on logs in words -------------------------------------------


def test_an_empty_log_is_an_empty_trace(log: Log) -> None:
    trace = log.trace()
    assert (trace.slices, trace.names) == ([], {})


def test_a_slice_for_each_operation_with_what_is_known_of_it(log: Log) -> None:
    log.add("copy", 10, (20, 30), reads=((4096, 100),), writes=((8192, 60), (9000, 40)), site=5)
    log.add("record", 12, (30, 31), event=4, version=2)
    log.add("call", 13, (35, 40))
    sites = {5: stack_text(("/prog/main.py", 12, "load"), ("/prog/main.py", 40, "<module>"))}
    copy, record, call = log.trace(sites).on("device 0 / stream 1")
    assert copy[1:5] == ("stream", "copy", 20, 30)
    stack = "/prog/main.py:12 in load\n/prog/main.py:40 in <module>"
    assert copy.args == {
        "kind": "copy", "id": 1, "thread": 1, "bytes read": 100, "bytes written": 100, "stack": stack
    }  # fmt: skip
    assert copy.place == ("/prog/main.py", 12, "load")
    assert (record.name, record.place) == ("record event 4", None)
    assert record.args == {"kind": "record", "id": 2, "thread": 1, "event": 4, "version": 2}
    assert (call.begin, call.end, call.args["token"]) == (35, 40, 7)


def test_the_place_of_an_operation_is_in_the_program(log: Log) -> None:
    inside, runner = hs.__file__, _script.__file__
    log.add("nop", 1, (2, 3), site=1)
    log.add("nop", 1, (4, 5), site=2)
    sites = {
        1: stack_text((inside, 3, "nop"), ("/prog/a.py", 9, "go"), (runner, 88, "_execute"), ("/bin/x", 1, "<module>")),
        2: stack_text((inside, 3, "nop")),
    }
    first, second = log.trace(sites).on("device 0 / stream 1")
    assert first.place == ("/prog/a.py", 9, "go")
    assert first.args["stack"] == "/prog/a.py:9 in go"
    assert second.place == (inside, 3, "nop"), "better than nothing"


def test_tracks_are_named_and_grouped_by_device(log: Log) -> None:
    log.add("new stream", 1, device=0, stream=3, host=True)
    log.add("nop", 2, (3, 4), device=0, stream=3)
    log.add("nop", 2, (3, 4), device=0, stream=0)
    log.add("nop", 2, (3, 4), device=1, stream=5)  # of a thread: nobody made it
    trace = log.trace()
    tracks = {name: group for name, group in trace.groups.items() if " / " in name}
    assert tracks == {
        "device 0 / default stream": "device 0",
        "device 0 / stream 3": "device 0",
        "device 1 / default stream 5": "device 1",
    }


def test_a_wait_gets_the_flow_of_the_record_it_binds_to(log: Log) -> None:
    first = log.add("record", 1, (2, 3), event=9, version=1)
    second = log.add("record", 4, (5, 6), event=9, version=2)
    late = log.add("wait", 5, (7, 7), stream=2, event=9, version=2)
    early = log.add("wait", 5, (7, 7), stream=3, event=9, version=1)
    again = log.add("wait", 6, (8, 8), stream=2, event=9, version=1)
    assert log.trace().edges() == {(second, late), (first, early), (first, again)}


def test_a_record_and_a_wait_of_one_moment_are_joined_in_order(log: Log) -> None:
    record = log.add("record", 5, (5, 5), event=1, version=1, stream=2)
    wait = log.add("wait", 5, (5, 5), event=1, version=1, stream=1)
    assert log.trace().edges() == {(record, wait)}


def test_a_wait_for_a_stream_gets_the_flow_of_the_last_operation_before_it(log: Log) -> None:
    log.add("nop", 1, (2, 3), stream=1)
    last = log.add("copy", 2, (3, 9), stream=1)
    wait = log.add("wait stream", 4, (9, 9), stream=2, other=(0, 1))
    log.add("nop", 5, (9, 10), stream=1)
    trace = log.trace()
    assert trace.edges() == {(last, wait)}
    assert spans(trace, "device 0 / stream 2") == [("blocked: waits for stream 1", 4, 9), ("wait stream 1", 9, 9)]


def test_a_wait_for_a_stream_of_another_device(log: Log) -> None:
    last = log.add("nop", 1, (2, 9), device=1, stream=1)
    wait = log.add("wait stream", 4, (9, 9), device=0, stream=1, other=(1, 1))
    trace = log.trace()
    assert trace.edges() == {(last, wait)}
    assert trace.on("device 0 / stream 1")[-1].name == "wait stream 1 of device 1"


def test_a_stream_that_waits_for_an_event_is_blocked_until_then(log: Log) -> None:
    log.add("nop", 1, (2, 4), stream=2)
    log.add("record", 1, (50, 51), event=1, version=1, stream=1)
    wait = log.add("wait", 2, (52, 53), event=1, version=1, stream=2)
    log.add("nop", 3, (53, 54), stream=2)
    trace = log.trace()
    assert spans(trace, "device 0 / stream 2") == [
        ("nop", 2, 4),
        ("blocked: waits for event 1", 4, 52),
        ("wait event 1", 52, 53),
        ("nop", 53, 54),
    ]
    assert trace.of("blocked")[0].args == {"operation": "wait event 1", "id": wait}


def test_a_wait_for_what_is_done_does_not_block(log: Log) -> None:
    log.add("record", 1, (2, 3), event=1, version=1, stream=1)
    log.add("wait", 5, (900, 900), event=1, version=1, stream=2)  # the runtime was slow
    assert log.trace().of("blocked") == []


def test_only_a_noticeable_pause_of_other_operations_counts_as_blocked(log: Log) -> None:
    log.add("nop", 1, (2, 3))
    log.add("nop", 2, (9_000, 9_001))
    log.add("copy", 3, (40_000, 50_000))
    log.add("gate", 4, (90_000, 90_001))
    assert [s[2:5] for s in log.trace().of("blocked")] == [
        ("blocked: waits for its turn", 9_001, 40_000),
        ("blocked: waits for a gate", 50_000, 90_000),
    ]


def test_a_stream_is_not_blocked_before_the_operation_was_enqueued(log: Log) -> None:
    log.add("nop", 1, (2, 3))
    log.add("nop", 1_000_000, (1_000_100, 1_000_200))
    assert log.trace().of("blocked") == []


def test_a_wait_that_passes_within_its_call_takes_its_place_behind_earlier_work(log: Log) -> None:
    record = log.add("record", 1, (1, 1), event=1, version=1, stream=2)
    log.add("copy", 2, (10, 100), stream=1)
    wait = log.add("wait", 50, (50, 50), event=1, version=1, stream=1)
    trace = log.trace()
    assert spans(trace, "device 0 / stream 1") == [("copy", 10, 100), ("wait event 1", 100, 100)]
    assert trace.edges() == {(record, wait)}


def test_a_wait_that_its_limit_ended_has_no_flow(log: Log) -> None:
    log.add("wait", 1, (40, 40), event=1, version=1, stream=2)
    log.add("record", 2, (90, 91), event=1, version=1, stream=1)
    assert log.trace().edges() == set()


def test_an_event_that_is_set_releases_waits_from_before_its_record(log: Log) -> None:
    early = log.add("wait", 1, (41, 41), event=1, version=0, stream=2)
    first = log.add("record", 2, (40, 41), event=1, version=1, stream=1)
    log.add("reset", 3, (50, 50), event=1, version=1, stream=2)
    again = log.add("wait", 4, (70, 70), event=1, version=1, stream=2)
    second = log.add("record", 60, (69, 70), event=1, version=2, stream=1)
    assert log.trace().edges() == {(first, early), (second, again)}


def test_what_has_not_ended_has_no_end(log: Log) -> None:
    log.add("nop", 1, (2, 3), stream=1)
    log.add("wait", 2, event=1, version=1, stream=1)
    log.add("nop", 3, stream=1)
    log.add("gate", 3, stream=2)
    log.add("call", 3, stream=3)
    log.add("record", 4, event=1, version=1, stream=3)
    trace = log.trace()
    assert spans(trace, "device 0 / stream 1")[1:] == [("blocked: waits for event 1", 3, math.inf)]
    assert trace.on("device 0 / stream 1")[-1].args["operations behind"] == 1
    assert spans(trace, "device 0 / stream 2") == [("blocked: waits for a gate", 3, math.inf)]
    assert spans(trace, "device 0 / stream 3") == [("call", 3, math.inf)]
    assert all(s.args["unfinished"] for s in trace.slices if s.end == math.inf)
    assert trace.edges() == set()


def test_without_times_operations_are_moments_of_their_calls_and_flows_stay(log: Log) -> None:
    record = log.add("record", 1, event=1, version=1, stream=1)
    wait = log.add("wait", 2, event=1, version=1, stream=2)
    trace = log.trace(timed=False)
    assert [(s.begin, s.instant) for s in trace.of("stream")] == [(1, True), (2, True)]
    assert trace.edges() == {(record, wait)}
    assert trace.counters == {}


def test_slices_of_blocks_last_from_allocation_to_free(log: Log) -> None:
    log.add("new memory", 10, writes=((4096, 100),), host=True)
    log.add("new memory", 20, writes=((8192, 50),), host=True)
    log.add("free memory", 30, writes=((4096, 100),), host=True)
    log.add("new memory", 40, writes=((4096, 10),), host=True)
    log.add("new memory", 45, device=-1, stream=0, writes=((100000, 7),), host=True)
    trace = log.trace()
    assert spans(trace, "device 0 blocks") == [
        ("100 bytes", 10, 30), ("50 bytes", 20, math.inf), ("10 bytes", 40, math.inf)
    ]  # fmt: skip
    assert trace.on("device 0 blocks")[0].args["address"] == "4096"
    assert trace.counters["device 0 bytes in use"] == [(10, 100), (20, 150), (30, 50), (40, 60)]
    assert trace.counters["memory bytes in use"] == [(45, 7)]
    assert trace.units["device 0 bytes in use"] == BYTES
    rows = [row for row in trace.rows.values() if row[0].track == "device 0 blocks"]
    assert sorted(len(row) for row in rows) == [1, 2], "a lane is used again once it is free"


def test_memory_freed_in_stream_order_is_in_use_until_the_free_takes_effect(log: Log) -> None:
    log.add("allocate", 10, stream=2, writes=((4096, 100),))
    log.add("copy", 11, (20, 90), stream=2, writes=((4096, 100),))
    log.add("free", 12, stream=2, writes=((4096, 100),))
    log.add("nop", 13, (95, 99), stream=2)
    trace = log.trace()
    assert spans(trace, "device 0 blocks") == [("100 bytes", 10, 90)]
    assert [name for name, *_ in spans(trace, "device 0 / stream 2")] == ["copy", "nop"], "nothing of it is enqueued"


def test_an_address_that_is_given_out_again_is_another_block(log: Log) -> None:
    log.add("new memory", 10, writes=((4096, 100),), host=True)
    log.add("new memory", 30, writes=((4096, 8),), host=True)  # its end was not told
    assert spans(log.trace(), "device 0 blocks") == [("100 bytes", 10, 30), ("8 bytes", 30, math.inf)]


def test_pending_operations_are_counted(log: Log) -> None:
    log.add("nop", 1, (5, 6))
    log.add("nop", 2, (6, 8), stream=2)
    log.add("gate", 3, stream=2)
    trace = log.trace()
    assert trace.counters["device 0 pending operations"] == [(1, 1), (2, 2), (3, 3), (6, 2), (8, 1)]
    assert trace.units["device 0 pending operations"] == COUNT


def test_host_threads_have_tracks_of_moments(log: Log) -> None:
    log.add("synchronize event", 9, stream=0, device=-1, event=3, version=1, host=True)
    log.add("new event", 9, stream=0, device=-1, event=3, host=True)
    trace = log.trace()
    (one,) = trace.on("thread 1")
    assert (one.name, one.instant, trace.groups["thread 1"]) == ("synchronize event 3", True, "host")


def test_texts_survive_whatever_they_hold(log: Log) -> None:
    log.add("nop", 1, (2, 3), site=1)
    (one,) = log.trace({1: stack_text(("/prog/\udc80ä.py", 1, "<lambda>"))}).of("stream")
    assert one.args["stack"] == "/prog/\\udc80ä.py:1 in <lambda>"


def test_large_logs_are_written_in_pieces_that_belong_together(log: Log) -> None:
    edges = set()
    for i in range(5_000):
        record = log.add("record", 10 * i, (10 * i + 1, 10 * i + 2), event=i + 1, version=1, site=i + 1)
        wait = log.add("wait", 10 * i, (10 * i + 3, 10 * i + 3), stream=2, event=i + 1, version=1)
        edges.add((record, wait))
    trace = log.trace({i + 1: stack_text(("/p.py", i + 1, "f")) for i in range(5_000)})
    assert trace.edges() == edges
    assert [s.place for s in trace.on("device 0 / stream 1")] == [("/p.py", i + 1, "f") for i in range(5_000)]


def test_without_the_package_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    monkeypatch.setitem(__import__("sys").modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(ImportError, match=r"pip install 'halstream\[cli\]'"):
        build(log.operations, log.executed, str)
