"""Random programs without races, and with one wait less: reports against a transitive closure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import halstream as hs
import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

LIMIT = 10.0
CELLS = 6  # of the one block that all work on
STREAMS = 4
EVENTS = 3
DEFAULT = 0  # the stream with this number is the default one, 1 is ordered with it, the others are not


@dataclass(frozen=True)
class Op:
    """A call. Accesses: `reads` and `writes` are cells. Waits name an event or a stream."""

    kind: str  # write, read, copy, record, wait, wait stream, sync stream, sync event, host read, host write
    stream: int = 0
    event: int = 0
    reads: tuple[int, int] = (0, 0)
    writes: tuple[int, int] = (0, 0)

    @property
    def orders(self) -> bool:
        return self.kind in ("wait", "wait stream", "sync stream", "sync event")


class Oracle:
    """What happens before what: each operation is a bit, and knows its ancestors by their bits."""

    def __init__(self) -> None:
        self.count = 0
        self.last = [0] * STREAMS  # by stream: the operations before its next one
        self.host = 0
        self.events = [0] * EVENTS
        self.barrier = 0  # what ordered streams come after since the default stream's latest operation
        self.accesses: list[tuple[int, Op]] = []
        self.racy = False

    def before(self, op: Op) -> int:
        """Return the operations that happen before an operation of a stream."""
        known = self.last[op.stream] | self.host
        if op.kind in ("wait", "wait stream"):
            return known
        if op.stream == DEFAULT:
            return known | self.last[1]
        return known | self.barrier if op.stream == 1 else known

    def unordered(self, op: Op) -> list[Op]:
        """Return earlier accesses that conflict with an operation and do not happen before it."""
        known = self.host if op.kind.startswith("host") else self.before(op)
        return [e for bit, e in self.accesses if not known & bit and conflict(e, op)]

    def add(self, op: Op) -> None:
        if op.kind == "sync stream":
            self.host |= self.last[op.stream] | (self.last[1] if op.stream == DEFAULT else 0)
            return
        if op.kind == "sync event":
            self.host |= self.events[op.event]
            return
        bit = 1 << self.count
        self.count += 1
        self.racy = self.racy or bool(self.unordered(op))
        if op.reads != op.writes:
            self.accesses.append((bit, op))
        if op.kind.startswith("host"):
            self.host |= bit
            return
        known = self.before(op) | bit
        if op.kind == "wait":
            known |= self.events[op.event]
        elif op.kind == "wait stream":
            known |= self.last[op.event] | (self.last[1] if op.event == DEFAULT else 0)
            known |= self.barrier if op.event == 1 else 0  # as a record on it would
        elif op.kind == "record":
            self.events[op.event] = known
        self.last[op.stream] = known
        if op.stream == DEFAULT:
            self.barrier = known


def conflict(one: Op, two: Op) -> bool:
    def share(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return max(a[0], b[0]) < min(a[1], b[1])

    return share(one.writes, two.writes) or share(one.writes, two.reads) or share(one.reads, two.writes)


def racy(program: list[Op]) -> bool:
    oracle = Oracle()
    for op in program:
        oracle.add(op)
    return oracle.racy


def run(program: list[Op]) -> bool:
    """Run a program on real streams; return whether a race is reported."""
    scratch = hs.empty(CELLS * (len(program) + 1), np.uint8)
    with hs.sanitize(on="collect") as report:
        streams = [hs.Stream.from_handle(0, 0), hs.Stream(0), hs.Stream(0, non_blocking=True)]
        streams.append(hs.Stream(0, non_blocking=True))
        events = [hs.Event() for _ in range(EVENTS)]
        block = hs.empty(CELLS, np.uint8)
        for i, op in enumerate(program):
            s = streams[op.stream]
            if op.kind == "write":
                block[op.writes[0] : op.writes[1]].fill(i % 256, s)
            elif op.kind == "read":
                size = op.reads[1] - op.reads[0]
                scratch[i * CELLS : i * CELLS + size].copy_from(block[op.reads[0] : op.reads[1]], s)
            elif op.kind == "copy":
                block[op.writes[0] : op.writes[1]].copy_from(block[op.reads[0] : op.reads[1]], s)
            elif op.kind == "record":
                s.record(events[op.event])
            elif op.kind == "wait":
                s.wait(events[op.event])
            elif op.kind == "wait stream":
                s.wait_stream(streams[op.event])
            elif op.kind == "sync stream":
                s.synchronize(timeout=LIMIT)
            elif op.kind == "sync event":
                events[op.event].synchronize(timeout=LIMIT)
            elif op.kind == "host read":
                hs.host_access(block[op.reads[0] : op.reads[1]], "r")
            else:
                hs.host_access(block[op.writes[0] : op.writes[1]], "w")
    for stream in streams:
        stream.synchronize(timeout=LIMIT)
    assert not report.by_query and not report.by_host_timing and not report.refills
    return bool(report)


def cells(draw: st.DrawFn) -> tuple[int, int]:
    start = draw(st.integers(0, CELLS - 1))
    return start, draw(st.integers(start + 1, CELLS))


@st.composite
def programs(draw: st.DrawFn) -> list[Op]:
    """Draw a program and order every pair of its accesses that conflicts."""
    program: list[Op] = []
    oracle = Oracle()

    def put(op: Op) -> None:
        program.append(op)
        oracle.add(op)

    others = st.integers(1, STREAMS - 1)  # waits of the default stream are no barrier, so it has none
    for _ in range(draw(st.integers(4, 24))):
        kind = draw(
            st.sampled_from(
                ["write", "write", "read", "read", "copy", "record", "wait", "wait stream", "sync stream", "host"]
            )
        )
        stream = draw(st.integers(0, STREAMS - 1))
        if kind == "record":
            put(Op("record", draw(others), draw(st.integers(0, EVENTS - 1))))
            continue
        if kind == "wait":
            put(Op("wait", draw(others), draw(st.integers(0, EVENTS - 1))))
            continue
        if kind == "wait stream":
            put(Op("wait stream", draw(others), draw(others)))
            continue
        if kind == "sync stream":
            put(Op("sync stream", stream))
            continue
        if kind == "host":
            kind = draw(st.sampled_from(["host read", "host write"]))
        op = Op(kind, stream)
        if kind == "copy":
            middle = draw(st.integers(1, CELLS - 1))
            size = draw(st.integers(1, min(middle, CELLS - middle)))
            one, two = (middle - size, middle), (middle, middle + size)
            if draw(st.booleans()):
                one, two = two, one
            op = replace(op, reads=one, writes=two)
        elif "read" in kind:
            op = replace(op, reads=cells(draw))
        else:
            op = replace(op, writes=cells(draw))
        for _ in range(100):
            missing = oracle.unordered(op)
            if not missing:
                break
            first = missing[0]
            way = draw(st.integers(0, 2)) if first.stream and op.stream else 2
            if kind.startswith("host") or way == 2:
                put(Op("sync stream", first.stream))
            elif way == 1:
                put(Op("wait stream", op.stream, first.stream))
            else:
                which = draw(st.integers(0, EVENTS - 1))
                put(Op("record", first.stream, which))
                put(Op("wait", op.stream, which))
        put(op)
    assert not oracle.racy
    return program


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
@pytest.mark.timeout(300)
def test_races_are_reported_if_and_only_if_there_is_one(program: list[Op]) -> None:
    assert not run(program), "a report on a program without a race"
    waits = [i for i, op in enumerate(program) if op.orders]
    for i in waits[:8]:
        less = program[:i] + program[i + 1 :]
        expected = racy(less)
        event(f"without one wait: {'a race' if expected else 'still ordered'}")
        assert run(less) is expected, (i, program[i])
