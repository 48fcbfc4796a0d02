"""Running a block of a program under a schedule, without work that remains pending after it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import TracebackType

from .. import _native
from .._core import _lost
from .._core._base import drain
from .._errors import DeviceLostError, HalError, NotReadyError, NotSupportedError, ScheduleError, WaitTimeoutError
from .._notes import add_note
from .._records import CallRecord, StepRecord, decode
from .control import Control
from .execution import Execution
from .token import Token, parse_spec, spec_text
from .turns import join, split, turns_text

__all__ = ["Schedule", "pending", "schedule", "settle", "stale"]

# Seconds that work which a block leaves behind may take, and that functions get
# to end once the rest was dropped.
DRAIN = 10.0
_DROP = 2.0


class Schedule:
    """A context in which the host device runs operations in a chosen order; see `schedule`.

    Attributes
    ----------
    spec : str
        What is in force, in the form that the runtime takes.
    expected : Token or None
        The token that is replayed.
    """

    def __init__(self, what: str | Token) -> None:
        self.expected: Token | None = None
        if isinstance(what, str) and re.match(r"\s*hs\d+(-|\s*$)", what):
            what = Token.parse(what)
        if isinstance(what, Token):
            self.expected = what
            self.spec: str = what.spec
        elif isinstance(what, str):
            self.spec = join(spec_text(*parse_spec(what)), split(what)[1])
        else:
            raise TypeError(f"schedule() takes a str or a Token, not {type(what).__name__}")
        #: Whether to leave out the order of a run that passes, as it is long.
        self.lean = False
        self._before = ""
        self._inside = False
        self._ran: Execution | None = None
        self._control: Control | None = None

    def __repr__(self) -> str:
        return f"<halstream Schedule {self.spec!r}{', in force' if self._inside else ''}>"

    def __enter__(self) -> Schedule:
        if self._before:
            raise RuntimeError("a schedule is used for one block; call schedule() again")
        drain()  # what was collected before is closed before, too
        before = _current()
        device, threads = split(self.spec)
        begin(device)
        self._before = before
        self._inside = True
        if threads:
            from .threadhooks import install

            try:
                self._control = install(threads)
            except BaseException:
                self.finish(drop=True)
                raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.finish(drop=exc is not None)
        except HalError as wrong:  # work that does not end, or a capture that was not ended
            if exc is None:
                raise
            add_note(exc, f"({wrong})")  # the exception that ended the block takes precedence, above all Ctrl-C
        assert self._ran is not None
        if self.expected is not None and (why := stale(self.expected, self._ran.fingerprint)):
            if exc is None:
                raise ScheduleError(why)
            add_note(exc, f"({why})")

    def finish(self, drop: bool, limit: float = DRAIN, strict: bool = True) -> bool:
        """End the block early: see `settle`.

        Without `strict` work that does not end is dropped silently; then the
        result is False.
        """
        if not self._inside:
            return True
        self._inside = False
        if self._control is not None:
            from .threadhooks import remove

            try:
                remove(self._control, failed=drop)
            except BaseException:  # Ctrl-C
                self._end(True, limit, strict)
                raise
        return self._end(drop, limit, strict)

    def _end(self, drop: bool, limit: float, strict: bool) -> bool:
        """End the run, once all threads run freely again."""
        full = drop or split(self.spec)[0] == "fifo" or not self.lean
        ran = self._with_turns(execution(self.spec, full))
        try:
            settle(drop, limit)
        except DeviceLostError:
            raise
        except HalError:
            if strict:
                raise
            return False
        finally:
            # What the block left has run by now; its calls are those of the block.
            self._ran = replace(ran, order=_order(ran.calls.count("\n")) if full else "")
            restore(self._before)
        return True

    def abandon(self) -> str:
        """End a block whose `finish` failed because a function neither ends nor can be dropped.

        The function runs on, in no order with later work.

        Returns
        -------
        str
            What was left, in words; '' if the schedule of the block stays in force nevertheless.
        """
        left = pending(0)
        _native.host_abandon()
        pending(_DROP)
        _forget_errors()
        try:
            restore(self._before)
        except ScheduleError:
            return ""
        return f"a function does not end, and was abandoned: {left}"

    @property
    def begun(self) -> bool:
        """Whether the block is running or has ended."""
        return self._inside or self._ran is not None

    @property
    def execution(self) -> Execution:
        """What ran: the whole block after its end, inside it what has run so far."""
        if self._ran is not None:
            return self._ran
        if not self._inside:
            raise RuntimeError("the block of this schedule has not begun")
        return self._with_turns(execution(self.spec, full=True))

    def _with_turns(self, ran: Execution) -> Execution:
        control = self._control
        if control is None:
            return ran
        return replace(
            ran,
            turns=turns_text(control.turns),
            points=control.points,
            uncontrolled=control.uncontrolled,
            handovers=tuple(control.handovers),
        )

    @property
    def token(self) -> Token:
        """The token that runs the same program in the same order again."""
        ran = self.execution
        return Token.of(self.spec, ran.fingerprint, controlled=not ran.uncontrolled)

    @property
    def order(self) -> tuple[str, ...]:
        """What happened: ``hM`` is call M of the host, ``S.N`` operation N of stream S."""
        return tuple(self.execution.items)

    @property
    def steps(self) -> int:
        """How many calls and operations there were."""
        return self.execution.steps


def schedule(what: str | Token) -> Schedule:
    """Run a block under a schedule of the host device.

    Inside the block the device moves only within the calls of the runtime, one
    operation at a time, in the order that the schedule chooses. A program with
    one thread then does the same each time. At the end of the block the
    schedule that was in force before comes back. Work that is still pending
    then runs first; if the block raises it is dropped.

    Parameters
    ----------
    what : str or Token
        ``fifo`` (the order of the calls), ``earliest`` (the most urgent and
        first ready one first), ``latest`` (only what the host is blocked for),
        ``random(seed)``, ``pct(seed, depth)``, ``starve(stream)`` (that stream
        last, numbered by first use), or a token.

    Returns
    -------
    Schedule
        A context manager with the properties ``token``, ``order`` and ``steps``.

    Raises
    ------
    ScheduleError
        If there is no such schedule or the token cannot be used; at the end of
        the block if the token is of a program with other operations.
    NotReadyError
        If work is pending when the block begins.
    NotSupportedError
        If the backend in use is not the host device.

    Notes
    -----
    Of several threads the calls are serialised and their order is recorded, but
    which thread calls first is up to the operating system.

    A block inside another one begins a run of its own; what the outer one gives
    afterwards is of the part after it.

    Examples
    --------
    >>> import halstream as hs
    >>> from halstream.testing import schedule
    >>> one, two, order = hs.Stream(), hs.Stream(), []
    >>> with schedule("latest") as run:
    ...     one.call(order.append, 1)
    ...     two.call(order.append, 2)
    ...     two.synchronize()
    ...     one.synchronize()
    >>> order
    [2, 1]
    >>> [item for item in run.order if not item.startswith("h")]
    ['2.1', '1.1']
    """
    return Schedule(what)


def begin(spec: str) -> None:
    """Put a schedule in force; a run begins."""
    try:
        _native.schedule_set(spec)
    except NotSupportedError:
        raise NotSupportedError(vendor_text(), operation="set schedule") from None


def vendor_text() -> str:
    """Return the error text: schedules need the host device, and how to select it."""
    return (
        f"schedules need the host device, and the backend in use is {_native.backend()!r}: "
        "set HALSTREAM_BACKEND=host or call halstream.use_backend('host'). The sanitizer works on every backend"
    )


def _current() -> str:
    return str(_native.schedule_get())


def execution(spec: str, full: bool) -> Execution:
    """Return what the run did so far; without `full` only its size and fingerprint."""
    calls: list[CallRecord] = decode(_native.schedule_calls()) if full else []
    return Execution(
        spec,
        _order() if full else "",
        "".join(f"{call['thread']} {call['kind']} {call['stream']}\n" for call in calls),
        _native.schedule_fingerprint(),
        _native.schedule_steps(),
    )


def _order(calls_most: float = math.inf) -> str:
    """Return what happened up to now in the form of `Execution.order`, without calls beyond a number."""
    steps: list[StepRecord] = decode(_native.schedule_order())
    return " ".join(
        f"h{step['call']}" if step["call"] else f"{step['stream']}.{step['operation']}#{step['id']}"
        for step in steps
        if step["call"] <= calls_most
    )


def stale(token: Token, fingerprint: str) -> str:
    """Return why a token does not belong to a run, '' if it does."""
    if token.fingerprint == fingerprint[:8]:
        return ""
    return (
        f"token {token} is stale: the program's operations changed since it was made (fingerprint "
        f"{fingerprint[:8]}, the token has {token.fingerprint}); what it replays may be another "
        "schedule, so explore again"
    )


def settle(drop: bool, limit: float = DRAIN) -> None:
    """Let pending work end, or drop it, so that the next run starts with nothing.

    Raises
    ------
    WaitTimeoutError
        If it does not end within `limit` seconds; it was dropped then.
    DeviceLostError
        If a device was lost to an error of which the program was not told. It works again.
    """
    lost = _lost.recover()  # with an error that the program knows of, or that is told here
    wrong: BaseException | None = DeviceLostError("; ".join(lost), operation="end schedule") if lost else None
    if not drop and wrong is None:
        try:
            left = pending(limit)
            if left:
                wrong = WaitTimeoutError(
                    f"work that was left does not end and was dropped: {left}", operation="end schedule"
                )
        except HalError as exc:  # a stall, or a device that was lost
            wrong = exc
            _lost.recover()
    if drop or wrong is not None:
        for ordinal in _devices():
            _native.device_abort(ordinal)
        try:
            pending(_DROP)
        finally:
            _forget_errors()
    if wrong is not None:
        raise wrong


def _devices() -> list[int]:
    return [ordinal for ordinal in range(_native.device_count()) if _native.device_used(ordinal)]


def pending(limit: float) -> str:
    """Wait for all devices; return what is left after `limit` seconds, '' for nothing."""
    for ordinal in _devices():
        if not _native.device_sync(ordinal, int(limit * 1e9)):
            return str(_native.device_describe(ordinal))
    return ""


def _forget_errors() -> None:
    """Clear unreported errors of the default streams, which outlive the run."""
    for ordinal in _devices():
        for own in (0, 1):
            try:
                _native.stream_sync(_native.stream_default(ordinal, own), 0)
            except BaseException:  # whatever a function raised
                continue


def restore(spec: str) -> None:
    """Put back the schedule that was in force before a block."""
    try:
        _native.schedule_set(spec)
    except NotReadyError as exc:
        raise ScheduleError(
            f"the block left work that neither ends nor can be dropped, so that its schedule stays in force: {exc}"
        ) from None
