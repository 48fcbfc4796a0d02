"""One short list of rules through all six dialects.

`ADAPTERS` says how each dialect words the same thing; the tests know no
dialect. What only one dialect has is tested in its own files.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import halstream as hs
import pytest
from paddle_help import CUSTOM

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


class Torch:
    """torch.cuda: methods on Stream and Event, lower priority numbers are more urgent."""

    normal, urgent = 0, -1

    def __init__(self) -> None:
        from halstream.torch import cuda

        self.names = cuda
        self.error: type[Exception] = RuntimeError

    def close(self) -> None:
        """Undo what the dialect did to the process; nothing for most."""

    def stream(self, priority: int = 0) -> Any:
        return self.names.Stream(priority=priority)

    def event(self, timing: bool = False) -> Any:
        return self.names.Event(enable_timing=timing)

    def core(self, stream: Any) -> hs.Stream:
        assert isinstance(stream, hs.Stream)
        return stream

    def record(self, event: Any, stream: Any) -> None:
        event.record(stream)

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    def wait_stream(self, stream: Any, other: Any) -> None:
        stream.wait_stream(other)

    def idle(self, stream: Any) -> bool:
        return bool(stream.query())

    def done(self, event: Any) -> bool:
        return bool(event.query())

    def synchronize(self, thing: Any) -> None:
        thing.synchronize()

    def elapsed(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end))

    def call(self, stream: Any, function: Callable[[], object]) -> None:
        stream.call(function)

    def current(self) -> Any:
        return self.names.current_stream()

    @contextmanager
    def context(self, stream: Any) -> Iterator[None]:
        with self.names.stream(stream):
            yield

    def priority(self, stream: Any) -> int:
        return int(stream.priority)


class Paddle(Torch):
    """paddle.device: like torch, but priority 1 is high and 2 normal."""

    normal, urgent = 2, 1

    def __init__(self) -> None:
        import halstream.paddle as paddle

        paddle.set_device(CUSTOM)
        self.names = paddle.device
        self.error = Exception

    def stream(self, priority: int = 2) -> Any:
        return self.names.Stream(priority=priority)

    @contextmanager
    def context(self, stream: Any) -> Iterator[None]:
        with self.names.stream_guard(stream):
            yield

    def priority(self, stream: Any) -> int:
        return 1 if hs.Stream.from_handle(stream.handle).priority < 0 else 2


class MindSpore(Torch):
    """mindspore.hal: StreamCtx, and TypeErrors where the others raise their own."""

    normal, urgent = 0, -1

    def __init__(self) -> None:
        from halstream.mindspore import hal

        self.names = hal
        self.error = Exception

    @contextmanager
    def context(self, stream: Any) -> Iterator[None]:
        with self.names.StreamCtx(stream):
            yield

    def priority(self, stream: Any) -> int:
        return int(stream.priority)


class CuPy(Torch):
    """cupy.cuda: `done` is an attribute, elapsed time a function, streams are contexts."""

    def __init__(self) -> None:
        from halstream.cupy import cuda

        self.names = cuda
        self.error = RuntimeError

    def event(self, timing: bool = False) -> Any:
        return self.names.Event(disable_timing=not timing)

    def wait_stream(self, stream: Any, other: Any) -> None:
        stream.wait_event(other.record())

    def idle(self, stream: Any) -> bool:
        return bool(stream.done)

    def done(self, event: Any) -> bool:
        return bool(event.done)

    def elapsed(self, start: Any, end: Any) -> float:
        return float(self.names.get_elapsed_time(start, end))

    def call(self, stream: Any, function: Callable[[], object]) -> None:
        stream.launch_host_func(lambda _: function(), None)

    def current(self) -> Any:
        return self.names.get_current_stream()

    @contextmanager
    def context(self, stream: Any) -> Iterator[None]:
        with stream:
            yield


class CudaCore(Torch):
    """cuda.core: `sync`, one `wait`, times by subtraction; no current stream."""

    def __init__(self) -> None:
        from halstream.cuda import core

        self.names = core
        self.error = Exception  # a wrong operand of wait() is a ValueError there
        self.device = core.Device(0)
        self.device.set_current()

    def stream(self, priority: int = 0) -> Any:
        return self.device.create_stream(options={"priority": priority})

    def event(self, timing: bool = False) -> Any:
        return self.device.create_event({"timing_enabled": timing})

    def record(self, event: Any, stream: Any) -> None:
        stream.record(event)

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait(event)

    def wait_stream(self, stream: Any, other: Any) -> None:
        stream.wait(other)

    def done(self, event: Any) -> bool:
        return bool(event.is_done)

    def synchronize(self, thing: Any) -> None:
        thing.sync()

    def elapsed(self, start: Any, end: Any) -> float:
        return float(end - start)


class CodeError(Exception):
    """A code other than 0 that an ACL function returned."""


class ACL(Torch):
    """acl.rt: handles and codes; nothing raises, no current stream."""

    normal, urgent = 7, 0

    def __init__(self) -> None:
        from halstream import acl
        from halstream.acl import _table, constants, rt

        self.names, self.constants, self.table = rt, constants, _table
        self.error = CodeError
        acl.init()
        self.check(rt.set_device(0))

    def close(self) -> None:
        from halstream import acl

        self.names.reset_device_force(0)
        acl.finalize()

    def check(self, result: Any) -> Any:
        *values, code = result if isinstance(result, tuple) else (result,)
        if code:
            raise CodeError(code)
        return values[0] if values else None

    def stream(self, priority: int = 0) -> Any:
        return self.check(self.names.create_stream_with_config(priority, 0))

    def event(self, timing: bool = False) -> Any:
        bits = self.constants.ACL_EVENT_SYNC | (self.constants.ACL_EVENT_TIME_LINE if timing else 0)
        return self.check(self.names.create_event_ex_with_flag(bits))

    def core(self, stream: Any) -> hs.Stream:
        return self.table.stream(stream)

    def record(self, event: Any, stream: Any) -> None:
        self.check(self.names.record_event(event, stream))

    def wait(self, stream: Any, event: Any) -> None:
        self.check(self.names.stream_wait_event(stream, event))

    def wait_stream(self, stream: Any, other: Any) -> None:
        event = self.event()
        self.record(event, other)
        self.wait(stream, event)

    def idle(self, stream: Any) -> bool:
        status = self.check(self.names.stream_query(stream))
        return bool(status == self.constants.ACL_STREAM_STATUS_COMPLETE)

    def done(self, event: Any) -> bool:
        return bool(self.check(self.names.query_event_status(event)))

    def synchronize(self, thing: Any) -> None:
        # Streams and events are both numbers; one of the two calls refuses.
        code = self.names.synchronize_stream(thing)
        if code:
            self.check(self.names.synchronize_event(thing))

    def elapsed(self, start: Any, end: Any) -> float:
        return float(self.check(self.names.event_elapsed_time(start, end)))

    def call(self, stream: Any, function: Callable[[], object]) -> None:
        self.check(self.names.launch_host_func(stream, lambda _: function(), None))

    def priority(self, stream: Any) -> int:
        return int(self.check(self.names.stream_get_priority(stream)))


ADAPTERS = {"torch": Torch, "paddle": Paddle, "mindspore": MindSpore, "cupy": CuPy, "cuda": CudaCore, "acl": ACL}


def speakers(*without: str) -> list[Any]:
    """Return the dialects for which a rule holds, as parameters of `say`."""
    return [pytest.param(n, marks=pytest.mark.dialect(n)) for n in ADAPTERS if n not in without]


@pytest.fixture(params=speakers())
def say(request: pytest.FixtureRequest) -> Iterator[Any]:
    """How one dialect says it."""
    adapter = ADAPTERS[request.param]()
    yield adapter
    adapter.close()


# paddle's events always keep time, and elapsed_time waits for the end event.
strict_timing = pytest.mark.parametrize("say", speakers("paddle"), indirect=True)
# In cuda.core and AscendCL every call names its stream: there is no current one.
has_current_stream = pytest.mark.parametrize("say", speakers("cuda", "acl"), indirect=True)


def test_functions_run_in_stream_order(say: Any) -> None:
    s, ran = say.stream(), []
    for i in range(50):
        say.call(s, lambda i=i: ran.append(i))
    say.synchronize(s)
    assert ran == list(range(50))


def test_a_function_runs_elsewhere(say: Any) -> None:
    s, ran = say.stream(), []
    say.call(s, lambda: ran.append(threading.get_ident()))
    say.synchronize(s)
    assert len(ran) == 1 and ran[0] != threading.get_ident()


def test_an_unrecorded_event_is_done_and_waiting_for_it_does_nothing(say: Any, hold: Hold) -> None:
    s, e = say.stream(), say.event()
    assert say.done(e)
    say.wait(s, e)
    say.synchronize(s)
    assert say.idle(s)


def test_a_held_stream_is_pending_and_so_is_its_event(say: Any, hold: Hold) -> None:
    s, e = say.stream(), say.event()
    gate = hold(say.core(s))
    say.record(e, s)
    assert not say.idle(s)
    assert not say.done(e)
    gate.open()
    say.synchronize(s)
    assert say.idle(s)
    assert say.done(e)


def test_wait_orders_two_streams(say: Any, hold: Hold, settle: Callable[[], None]) -> None:
    a, b, e, ran = say.stream(), say.stream(), say.event(), []
    gate = hold(say.core(a))
    say.call(a, lambda: ran.append("a"))
    say.record(e, a)
    say.wait(b, e)
    say.call(b, lambda: ran.append("b"))
    settle()
    assert ran == []
    gate.open()
    say.synchronize(b)
    assert ran == ["a", "b"]


def test_wait_keeps_the_record_of_its_call(say: Any, hold: Hold) -> None:
    a, b, e = say.stream(), say.stream(), say.event()
    first = hold(say.core(a))
    say.record(e, a)
    say.wait(b, e)
    second = hold(say.core(a))
    say.record(e, a)
    first.open()
    say.synchronize(b)
    assert not say.done(e)
    second.open()
    say.synchronize(e)
    assert say.done(e)


@pytest.mark.needs("held-streams")
def test_waiting_for_a_stream_takes_its_work_so_far(say: Any, hold: Hold) -> None:
    a, b = say.stream(), say.stream()
    first = hold(say.core(a))
    say.wait_stream(b, a)
    second = hold(say.core(a))
    assert not say.idle(b)
    first.open()
    say.synchronize(b)
    assert not say.idle(a)
    second.open()


def polled(say: Any, done: Callable[[Any, Any], bool]) -> list[str]:
    """Return the findings where the host asks until work is done, and uses its memory on another stream then."""
    a, b, e, x = say.stream(), say.stream(), say.event(), hs.empty(64, "uint8")
    hs.synchronize()
    with hs.sanitize(on="collect") as report:
        x.fill(1, stream=say.core(a))
        say.record(e, a)
        for _ in range(int(LIMIT / 0.001)):
            if done(a, e):
                break
            time.sleep(0.001)
        else:
            pytest.fail("the work does not end")
        x.fill(2, stream=say.core(b))
        hs.synchronize()
    assert not report
    return [one.category for one in report.all]


def test_V2_memory_is_ordered_by_a_query_that_said_yes(say: Any) -> None:
    assert polled(say, lambda _, e: bool(say.done(e))) == ["query"]
    assert polled(say, lambda s, _: bool(say.idle(s))) == ["query"]


def test_elapsed_is_milliseconds(say: Any) -> None:
    s, start, end = say.stream(), say.event(timing=True), say.event(timing=True)
    say.record(start, s)
    say.core(s).delay(0.02)
    say.record(end, s)
    say.synchronize(s)
    assert 19.0 <= say.elapsed(start, end) < 10_000.0


@strict_timing
def test_elapsed_needs_timing(say: Any) -> None:
    s, start, end = say.stream(), say.event(), say.event()
    say.record(start, s)
    say.record(end, s)
    say.synchronize(s)
    with pytest.raises((say.error, ValueError)) as caught:
        say.elapsed(start, end)
    assert say.error is CodeError or isinstance(caught.value, hs.HalError)


@strict_timing
def test_elapsed_of_a_pending_event_is_an_error(say: Any, hold: Hold) -> None:
    s, start, end = say.stream(), say.event(timing=True), say.event(timing=True)
    say.record(start, s)
    hold(say.core(s))
    say.record(end, s)
    with pytest.raises(say.error):
        say.elapsed(start, end)


def test_lower_priorities_are_more_urgent(say: Any) -> None:
    normal, urgent = say.stream(priority=say.normal), say.stream(priority=say.urgent)
    assert say.priority(normal) == say.normal
    assert say.priority(urgent) == say.urgent
    # What the core makes of it does not depend on the dialect: lower is more urgent.
    levels = [hs.Stream.from_handle(say.core(s).handle).priority for s in (urgent, normal)]
    assert levels[0] < levels[1]


@has_current_stream
def test_the_current_stream_is_the_very_object(say: Any) -> None:
    before, s = say.current(), say.stream()
    with say.context(s):
        assert say.current() is s
        assert hs.current_stream() == s
    assert say.core(say.current())._id == say.core(before)._id


@has_current_stream
def test_the_current_stream_is_restored_after_an_exception(say: Any) -> None:
    outer, inner = say.stream(), say.stream()
    with say.context(outer):
        with pytest.raises(ZeroDivisionError), say.context(inner):
            assert say.current() is inner
            1 / 0  # noqa: B018
        assert say.current() is outer


@has_current_stream
def test_all_dialects_share_the_current_stream(say: Any) -> None:
    s = hs.Stream()
    with s:
        assert say.core(say.current())._id == s._id


@pytest.mark.parametrize("wrong", [None, 1.5, "stream", object()])
def test_a_wrong_operand_is_refused_and_nothing_is_enqueued(say: Any, wrong: Any) -> None:
    s = say.stream()
    with pytest.raises((TypeError, AttributeError, say.error)):
        say.wait(s, wrong)
    say.synchronize(s)
    assert say.idle(s)


def test_an_event_does_not_pass_for_a_stream(say: Any) -> None:
    e = say.event()
    with pytest.raises((TypeError, AttributeError, say.error)):
        say.record(e, say.event())
    assert say.done(e)


def test_a_closed_stream_is_refused(say: Any) -> None:
    s, e = say.stream(), say.event()
    if isinstance(say, ACL):
        say.check(say.names.destroy_stream(s))
    else:
        say.core(s).close()
    with pytest.raises(say.error) as caught:
        say.record(e, s)
    assert say.error is CodeError or isinstance(caught.value, hs.ClosedError)
    assert say.done(e)


def test_a_function_that_calls_the_runtime_gets_an_error(say: Any) -> None:
    s, other, outcome = say.stream(), say.stream(), []

    def inside() -> None:
        try:
            say.synchronize(other)
            outcome.append("returned")
        except Exception as exc:
            outcome.append(type(exc).__name__)

    say.call(s, inside)
    say.synchronize(s)
    assert len(outcome) == 1 and outcome != ["returned"]


def test_an_exception_in_a_function_is_reported_and_later_work_runs(say: Any, unraisable: list[Any]) -> None:
    s, ran = say.stream(), []

    def lost() -> None:
        raise LookupError("lost")

    say.call(s, lost)
    say.call(s, lambda: ran.append(1))
    say.synchronize(s)
    assert ran == [1]
    assert [report.type for report in unraisable] == [LookupError]
