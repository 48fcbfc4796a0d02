"""Random programs over streams, events, gates and current streams, against a small model.

The model knows for every operation which ones must be done before it. From
that follow two claims for each stream and event at any moment: what still
waits for a closed gate must answer "pending", and what waits for nothing must
come to rest. At the end all gates open, and every function must have run once,
after everything it had to wait for.

The current stream and device have a machine of their own.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from typing import Any

import halstream as hs
import hypothesis.strategies as st
import pytest
from endings import collect_young
from halstream._core import _current
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

LIMIT = 5.0
DEVICES = 2
STREAMS = 5


class Op:
    """An operation of the model: done when its gate is open and all before it are done."""

    def __init__(self, before: list[Op | None], token: int | None = None) -> None:
        self.before = [op for op in before if op is not None]
        self.token = token
        self.closed = False
        self._done = False

    def done(self) -> bool:
        # Depth first without recursion: chains grow long. Done never becomes undone.
        stack = [self]
        while stack:
            op = stack[-1]
            if op._done:
                stack.pop()
            elif op.closed:
                return False
            else:
                left = [other for other in op.before if not other._done]
                if left:
                    stack.append(left[0])
                else:
                    op._done = True
                    stack.pop()
        return True


class Line:
    """A stream and the model's view of it: its last operation."""

    def __init__(self, stream: hs.Stream, device: int, blocking: bool, legacy: bool = False) -> None:
        self.stream, self.device, self.blocking, self.legacy = stream, device, blocking, legacy
        self.last: Op | None = None


class Point:
    """An event and the model's view of it: the operation of its last record."""

    def __init__(self, timing: bool) -> None:
        self.event = hs.Event(timing=timing)
        self.device: int | None = None
        self.recorded: Op | None = None
        self.line: Line | None = None


class Programs(RuleBasedStateMachine):
    """The rules draw from what exists; indices are taken modulo its number."""

    def __init__(self) -> None:
        super().__init__()
        _current.reset()
        self.lines: list[Line] = []
        self.forgotten: list[Line] = []
        self.points: list[Point] = []
        self.gates: list[tuple[Any, Op]] = []
        self.tokens = itertools.count()
        self.ops: list[Op] = []
        self.ran: list[int] = []
        for device in range(DEVICES):
            self.lines.append(Line(hs.Device(device).default_stream, device, True, legacy=True))
        # Most programs have a few of each from the start.
        for device, non_blocking in ((0, False), (0, True), (1, False), (0, False)):
            self.new_stream(device, non_blocking, 0)
        for _ in range(3):
            self.new_event(timing=False)
        self.probe = hs.Stream(non_blocking=True)

    # -- the model ---------------------------------------------------------

    def add(self, line: Line, *others: Op | None, token: int | None = None) -> Op:
        """Put an operation on a stream of the model, in the order the contract gives it."""
        before = [line.last, *others]
        if line.legacy:
            all_lines = self.lines + self.forgotten
            before += [o.last for o in all_lines if o.device == line.device and o.blocking]
        elif line.blocking:
            before.append(self.lines[line.device].last)
        line.last = Op(before, token)
        self.ops.append(line.last)
        return line.last

    def mark(self, line: Line) -> Op | None:
        """Return the operation that is done when all work so far on a stream is.

        On the legacy default stream that includes the work of the streams
        ordered with it, so a marker stands there.
        """
        return self.add(line) if line.legacy else line.last

    def marked(self, line: Line) -> Op | None:
        """Return what one waits for that waits for a stream: a record is one more operation in the legacy order."""
        return self.add(line) if line.blocking else self.mark(line)

    def needed(self, point: Point) -> Op | None:
        """Return what a wait for the event waits for, None when there is nothing.

        A wait for what is done enqueues nothing, but on the legacy default stream (S5). The
        runtime comes to rest first, so that the model agrees with it on what is done.
        """
        if point.recorded is not None and point.recorded.done():
            point.event.synchronize(timeout=LIMIT)
            return None
        return point.recorded

    def line(self, index: int) -> Line:
        return self.lines[index % len(self.lines)]

    # -- streams and events ------------------------------------------------

    @rule(device=st.integers(0, DEVICES - 1), non_blocking=st.booleans(), priority=st.integers(-9, 2))
    @precondition(lambda self: len(self.lines) < 8)
    def new_stream(self, device: int, non_blocking: bool, priority: int) -> None:
        stream = hs.Stream(device=device, non_blocking=non_blocking, priority=priority)
        assert stream.query()
        self.lines.append(Line(stream, device, not non_blocking))

    @rule(timing=st.booleans())
    @precondition(lambda self: len(self.points) < 6)
    def new_event(self, timing: bool) -> None:
        point = Point(timing)
        assert point.event.query()
        self.points.append(point)

    @rule(i=st.integers(0, 99))
    def nop(self, i: int) -> None:
        line = self.line(i)
        line.stream.nop()
        self.add(line)

    @rule(i=st.integers(0, 99))
    def call(self, i: int) -> None:
        line, token = self.line(i), next(self.tokens)
        line.stream.call(self.ran.append, token)
        self.add(line, token=token)

    @rule(i=st.integers(0, 99))
    @precondition(lambda self: sum(op.closed for _, op in self.gates) < 4)
    def hold(self, i: int) -> None:
        line = self.line(i)
        gate = hs.testing.Gate(line.stream)
        op = self.add(line)
        op.closed = True
        self.gates.append((gate, op))

    @rule(i=st.integers(0, 99))
    @precondition(lambda self: self.gates)
    def open(self, i: int) -> None:
        gate, op = self.gates[i % len(self.gates)]
        gate.open()
        op.closed = False

    @rule(i=st.integers(0, 99), k=st.integers(0, 99))
    @precondition(lambda self: self.points)
    def record(self, i: int, k: int) -> None:
        line, point = self.line(i), self.points[k % len(self.points)]
        if point.device not in (None, line.device):
            with pytest.raises(hs.WrongDeviceError):
                line.stream.record(point.event)
            return
        line.stream.record(point.event)
        point.device, point.line = line.device, line
        point.recorded = self.add(line)

    @rule(i=st.integers(0, 99), k=st.integers(0, 99))
    @precondition(lambda self: self.points)
    def wait_event(self, i: int, k: int) -> None:
        line, point = self.line(i), self.points[k % len(self.points)]
        wanted = self.needed(point)
        line.stream.wait(point.event)
        if (wanted is not None and point.line is not line) or (line.legacy and point.recorded is not None):
            self.add(line, wanted)

    @rule(i=st.integers(0, 99), k=st.integers(0, 99))
    def wait_stream(self, i: int, k: int) -> None:
        line, other = self.line(i), self.line(k)
        if line is other:
            line.stream.wait(line.stream)
            return
        mark = self.marked(other)
        if mark is None or mark.done():
            other.stream.synchronize(timeout=LIMIT)
            mark = None
        line.stream.wait(other.stream)
        if mark is not None or line.legacy:
            self.add(line, mark)

    @rule(i=st.integers(0, 99))
    @precondition(lambda self: len(self.lines) > DEVICES)
    def forget_stream(self, i: int) -> None:
        # Its work goes on, in the same order as before; a context may still hold the object.
        line = self.lines.pop(DEVICES + i % (len(self.lines) - DEVICES))
        del line.stream
        self.forgotten.append(line)
        collect_young()

    @rule(k=st.integers(0, 99))
    @precondition(lambda self: self.points)
    def close_event(self, k: int) -> None:
        point = self.points.pop(k % len(self.points))
        point.event.close()
        with pytest.raises(hs.ClosedError):
            point.event.query()

    @rule(i=st.integers(0, 99))
    def synchronize(self, i: int) -> None:
        line = self.line(i)
        mark = self.mark(line)
        if mark is None or mark.done():
            line.stream.synchronize(timeout=LIMIT)
        else:
            with pytest.raises(hs.WaitTimeoutError):
                line.stream.synchronize(timeout=0.001)

    # -- what must hold at any moment --------------------------------------

    @invariant()
    def held_work_is_pending(self) -> None:
        self.probe.call(int)  # what is not really held comes to rest in the meantime
        self.probe.synchronize(timeout=LIMIT)
        for line in self.lines:
            if line.last is not None and not line.last.done():
                assert not line.stream.query()
        for point in self.points:
            if point.recorded is not None and not point.recorded.done():
                assert not point.event.query()
        ran = set(self.ran)
        assert not any(op.token in ran for op in self.ops if op.token is not None and not op.done())

    @rule()
    def free_work_comes_to_rest(self) -> None:
        for line in self.lines:
            if line.legacy:
                continue  # its state includes that of others
            if line.last is None or line.last.done():
                line.stream.synchronize(timeout=LIMIT)
                assert line.stream.query()
        for point in self.points:
            if point.recorded is None or point.recorded.done():
                point.event.synchronize(timeout=LIMIT)
                assert point.event.query()

    def teardown(self) -> None:
        for gate, op in self.gates:
            gate.open()
            op.closed = False
        for device in range(DEVICES):
            hs.synchronize(device, timeout=LIMIT)
        place = {token: n for n, token in enumerate(self.ran)}
        assert len(place) == len(self.ran), "a function ran twice"
        # The latest function among those that must precede each operation.
        latest: dict[Op, int] = {}
        for op in self.ops:
            before = max((latest.get(other, -1) for other in op.before), default=-1)
            if op.token is not None:
                assert op.token in place, "a function did not run"
                assert place[op.token] > before, "a function ran too early"
                before = place[op.token]
            latest[op] = before


class Frame:
    """What one context, or the thread outside of all, has chosen."""

    def __init__(self, device: int | None = None) -> None:
        self.device = device
        self.streams: dict[int, hs.Stream] = {}


class Contexts(RuleBasedStateMachine):
    """Contexts and changes of the current stream and device, against a list of frames."""

    def __init__(self) -> None:
        super().__init__()
        _current.reset()
        self.streams = [hs.Stream(device=i % DEVICES) for i in range(STREAMS)]
        self.contexts: list[Any] = []
        self.frames = [Frame(0)]

    @rule(i=st.integers(0, STREAMS - 1))
    @precondition(lambda self: len(self.contexts) < 5)
    def enter_stream(self, i: int) -> None:
        stream = self.streams[i]
        stream.__enter__()
        frame = Frame(stream.device.ordinal)
        frame.streams[stream.device.ordinal] = stream
        self.contexts.append(stream)
        self.frames.append(frame)

    @rule(device=st.integers(0, DEVICES - 1))
    @precondition(lambda self: len(self.contexts) < 5)
    def enter_device(self, device: int) -> None:
        context = hs.Device(device)
        context.__enter__()
        self.contexts.append(context)
        self.frames.append(Frame(device))

    @rule()
    @precondition(lambda self: self.contexts)
    def leave(self) -> None:
        self.contexts.pop().__exit__(None, None, None)
        self.frames.pop()

    @rule(i=st.integers(0, STREAMS - 1))
    def use(self, i: int) -> None:
        stream = self.streams[i]
        hs.use(stream)
        self.frames[-1].device = stream.device.ordinal
        self.frames[-1].streams[stream.device.ordinal] = stream

    @rule(device=st.integers(0, DEVICES - 1))
    def set_device(self, device: int) -> None:
        hs.set_device(device)
        self.frames[-1].device = device

    @rule()
    def record_without_a_stream(self) -> None:
        event = hs.Event()
        event.record()
        assert event._ordinal == hs.current_device().ordinal
        event.synchronize(timeout=LIMIT)

    @rule()
    def a_new_thread_starts_at_the_defaults(self) -> None:
        seen: list[Any] = []
        copy = contextvars.copy_context()
        look = lambda: seen.append((hs.current_device().ordinal, hs.current_stream(0)))  # noqa: E731
        thread = threading.Thread(target=copy.run, args=(look,))
        thread.start()
        thread.join(LIMIT)
        assert seen == [(0, hs.Device(0).default_stream)]

    @invariant()
    def current_is_the_models(self) -> None:
        device = next(f.device for f in reversed(self.frames) if f.device is not None)
        assert hs.current_device().ordinal == device
        for d in range(DEVICES):
            chosen = next((f.streams[d] for f in reversed(self.frames) if d in f.streams), None)
            if chosen is None:
                assert hs.current_stream(d) == hs.Device(d).default_stream
            else:
                assert hs.current_stream(d) is chosen

    def teardown(self) -> None:
        while self.contexts:
            self.contexts.pop().__exit__(None, None, None)
        _current.reset()


def machine(cls: type[RuleBasedStateMachine], examples: int) -> Any:
    """Return the test of a state machine."""
    test = cls.TestCase
    test.settings = settings(
        max_examples=examples,
        stateful_step_count=50,
        deadline=None,  # time is no property of the runtime on a shared machine
        derandomize=True,
        # Found is enough: a program that hangs takes its limit at every attempt to shorten it.
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    test.pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("backend")]
    return test


TestPrograms = pytest.mark.needs("held-streams")(machine(Programs, 300))
TestContexts = machine(Contexts, 150)
