"""A small model of the host device under deterministic schedulers, for tests of what drives them.

A program is a function of a `Device`; it enqueues functions on numbered
streams, records and waits. The order in which things happen is the
scheduler's, as in the runtime: nothing moves but at the calls of the host.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from halstream._schedules.execution import Execution, Failure
from halstream._schedules.token import Hold, parse_spec


@dataclass
class Op:
    stream: int
    number: int
    sequence: int
    function: Callable[[], Any]
    after: list[Op] = field(default_factory=list)
    done: bool = False

    @property
    def name(self) -> str:
        return f"{self.stream}.{self.number}"


class Device:
    """One run: the streams, what happened, and who decides what is next."""

    def __init__(self, spec: str) -> None:
        self.kind, self.parameters = parse_spec(spec)
        self.ops: list[Op] = []
        self.streams: dict[Any, list[Op]] = {}
        self.order: list[str] = []
        self.calls: list[str] = []
        seed = self.parameters[0] if self.kind in ("random", "pct") else 0
        self.random = random.Random(f"{self.kind}{seed}")
        self.priorities: dict[int, float] = {}
        steps = self.parameters[2] if self.kind == "pct" else 1
        depth = self.parameters[1] if self.kind == "pct" else 1
        self.changes = {self.random.randrange(steps) for _ in range(depth - 1)}

    # What a program calls.

    def op(self, stream: Any, function: Callable[[], Any] = lambda: None, after: list[Op] | None = None) -> Op:
        """Enqueue a function; it also waits for the operations in `after`."""
        line = self.streams.setdefault(stream, [])
        index = list(self.streams).index(stream) + 1
        op = Op(index, len(line) + 1, len(self.ops), function, list(after or ()))
        if line:
            op.after.append(line[-1])
        self.begin("call", index)
        line.append(op)
        self.ops.append(op)
        self.point()
        return op

    def sync(self, stream: Any) -> None:
        """Wait for a stream."""
        line = self.streams.get(stream, [])
        self.begin("synchronize", line[0].stream if line else 0)
        self.point()
        self.block(list(line))

    def query(self, op: Op) -> bool:
        self.begin("query", op.stream)
        self.point()
        return op.done

    # What the runtime does.

    def begin(self, kind: str, stream: int) -> None:
        self.calls.append(f"1 {kind} {stream}")
        self.order.append(f"h{len(self.calls)}")

    def ready(self) -> list[Op]:
        return [op for op in self.ops if not op.done and all(before.done for before in op.after)]

    def happened(self, hold: Hold) -> bool:
        return (f"{hold.until}.{hold.after}" if hold.until else f"h{hold.after}") in self.order

    def held(self, op: Op) -> bool:
        return any(
            (hold.stream, hold.number) == (op.stream, op.number) and not self.happened(hold) for hold in self.parameters
        )

    def run(self, op: Op) -> None:
        op.function()
        op.done = True
        self.order.append(op.name)
        if len(self.order) in self.changes:
            self.priorities[op.stream] = -len(self.order)

    def pick(self, blocked: bool) -> Op | None:
        """The operation that runs next; None leaves it at that."""
        ready = self.ready()
        if not ready:
            return None
        if self.kind == "latest":
            return None
        if self.kind == "starve":
            ready = [op for op in ready if op.stream != self.parameters[0]]
        elif self.kind == "holds":
            ready = [op for op in ready if not self.held(op)]
        elif self.kind == "random":
            if not blocked and self.random.random() < 0.5:
                return None
            return self.random.choice(ready)
        elif self.kind == "pct":
            # The host is one of those that have a priority.
            for stream in (0, *(op.stream for op in ready)):
                self.priorities.setdefault(stream, self.random.random())
            best = max(ready, key=lambda op: self.priorities[op.stream])
            return best if blocked or self.priorities[best.stream] > self.priorities[0] else None
        return ready[0] if ready else None

    def point(self) -> None:
        while (op := self.pick(blocked=False)) is not None:
            self.run(op)

    def block(self, wanted: list[Op]) -> None:
        while not all(op.done for op in wanted):
            op = self.pick(blocked=True)
            if op is None:
                op = self.needed(wanted)
            self.run(op)

    def needed(self, wanted: list[Op]) -> Op:
        op = next(op for op in wanted if not op.done)
        while waits := [before for before in op.after if not before.done]:
            op = waits[0]
        return op


class Program:
    """Runs a program of the model under specs, and counts how often."""

    def __init__(self, program: Callable[[Device], None]) -> None:
        self.program = program
        self.specs: list[str] = []

    def __call__(self, spec: str, trace: bool = False) -> Execution:
        self.specs.append(spec)
        device = Device(spec)
        failure = None
        try:
            self.program(device)
        except Exception as exc:
            failure = Failure.of(exc)
        for line in list(device.streams):
            device.block(device.streams[line])
        calls = "\n".join(device.calls)
        return Execution(
            spec,
            " ".join(device.order),
            calls,
            f"{zlib.crc32(calls.encode()):016x}",
            len(device.order),
            failure,
        )
