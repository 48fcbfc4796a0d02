"""Exploring: a program is run under many schedules, and the one that fails is explained."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .. import _native
from .._core import _hostfunc
from .._errors import NondeterminismError, ScheduleError, UnorderedAccessError
from .._notes import add_note
from .._records import OperationRecord, decode
from .._runtime import runtime
from .block import Schedule
from .execution import Execution, Failure
from .explain import explain, nondeterminism
from .isolation import RunIsolation
from .search import Explored, Settings, search, used

__all__ = ["Explored", "Operations", "explore", "is_failure", "traced"]


def explore(
    function: Callable[[], object],
    *,
    schedules: int = 50,
    depth: int = 3,
    seed: int = 0,
    sanitize: bool = False,
    shrink_runs: int = 200,
    shrink_seconds: float = 20.0,
    prove: int = 0,
    threads: bool = False,
) -> Explored:
    """Run a function under many schedules until one makes it fail.

    The first is ``fifo``, then come ``latest``, ``earliest`` and ``starve`` for
    the busiest streams, then ``pct`` and ``random`` in turns. What fails is run
    again under the same schedule, which is then made as small as the budget
    allows: the fewest departures from ``fifo`` with which the function fails in
    the same way.

    Parameters
    ----------
    function : function
        Takes nothing, makes its own streams, checks its own results and can be
        called again. One that uses no streams is called once.
    schedules : int
        How many to try, 1 to 100,000.
    depth : int
        Of ``pct``: how many steps must come in a certain order for it to fail.
    seed : int
        Equal arguments give equal schedules.
    sanitize : bool
        Look for unordered accesses, too, in every run.
    shrink_runs, shrink_seconds : int, float
        What may be spent on making a failing schedule small.
    prove : int
        Run every order that can make a difference, up to so many, in place of `schedules`:
        conflicting operations that nothing orders are run in either order, in every combination.
        Functions conflict with everything unless their ``reads=`` and ``writes=`` are declared.
        Threads of the program are not part of it.
    threads : bool
        Let threads that the function starts run one at a time, and take turns at locks, at whatever waits
        by them (events, conditions, queues, futures, joins), at sleeps, which take no time, and at
        calls of the runtime. A token then stands for the turns, too.

    Returns
    -------
    Explored
        How much was tried.

    Raises
    ------
    Exception
        What the function raised, with notes: the token, and which operations
        come in the wrong order.
    NondeterminismError
        If the function does not do the same twice under one schedule; the text
        has the first difference.
    ScheduleError
        If a number is out of range, or another `explore` is running.
    NotReadyError
        If work is pending.
    NotSupportedError
        If the backend in use is not the host device.

    Examples
    --------
    >>> import halstream as hs
    >>> from halstream.testing import explore
    >>> def right():
    ...     one, two, seen = hs.Stream(), hs.Stream(), []
    ...     one.call(seen.append, 1)
    ...     two.wait(one.record())
    ...     two.call(seen.append, 2)
    ...     two.synchronize()
    ...     assert seen == [1, 2]
    >>> explore(right, schedules=20).schedules
    20
    >>> print(explore(right, prove=1000))
    the only order passes
    """
    if _exploring:
        raise ScheduleError("explore() is called by a program that is being explored: explore one of the two")
    settings = Settings(schedules, depth, seed, shrink_runs, shrink_seconds, prove, threads)
    if not callable(function):
        raise TypeError(f"explore() takes a function, not {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise TypeError("explore() takes a plain function: give lambda: asyncio.run(...)")
    _exploring.append(function)
    try:
        with RunIsolation() as isolation:
            found, explored = search(_Program(function, isolation, sanitize), settings)
    finally:
        _exploring.clear()
    if found is None:
        return explored
    exc = found.execution.kept
    assert exc is not None
    found.execution = found.execution.bare()
    try:
        if not used(found.execution):
            raise exc
        if found.difference:
            raise NondeterminismError(nondeterminism(found)) from exc
        add_note(exc, explain(found, replay=f"halstream.testing.schedule({str(found.token)!r})"))
        raise exc
    finally:
        del exc  # a cycle through this frame otherwise


#: The function that is being explored: a run inside a run would hide it.
_exploring: list[Callable[[], object]] = runtime.keep("explorations", [])


class _Program:
    """Runs a function under specs, for `search`."""

    def __init__(self, function: Callable[[], object], isolation: RunIsolation, sanitize: bool) -> None:
        self._function = function
        self._isolation = isolation
        self._sanitize = sanitize

    def __call__(self, spec: str, trace: bool = False) -> Execution:
        self._isolation.begin()
        try:
            return self._run(spec, trace)
        finally:
            self._isolation.end()

    def _run(self, spec: str, trace: bool) -> Execution:
        block = Schedule(spec)
        block.lean = not trace
        exception: BaseException | None = None
        begun = False
        with contextlib.ExitStack() as stack:
            lines = stack.enter_context(traced()) if trace else Operations()
            try:
                with block:
                    begun = True
                    with self._watch():
                        self._function()
            except BaseException as exc:
                if not begun or not is_failure(exc):
                    raise
                exception = exc
        failure = None if exception is None else failure_of(exception)
        return replace(
            block.execution, failure=failure, trace=tuple(lines), declared=frozenset(lines.declared), kept=exception
        )

    def _watch(self) -> contextlib.AbstractContextManager[object]:
        if not self._sanitize:
            return contextlib.nullcontext()
        from .._checks.sanitize import sanitize

        watch: contextlib.AbstractContextManager[object] = sanitize(on="raise")
        return watch


class Operations(list[OperationRecord]):
    """The operations that were enqueued.

    Attributes
    ----------
    declared : set of int
        The numbers of the functions among them that declare all that they work on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.declared: set[int] = set()


@contextlib.contextmanager
def traced() -> Iterator[Operations]:
    """Yield a list that holds, after the block, the operations enqueued in it."""
    operations = Operations()
    _native.positions(1)
    try:
        handle = _native.trace_start()
        before, _hostfunc.noted = _hostfunc.noted, operations.declared
        try:
            yield operations
        finally:
            _hostfunc.noted = before
            operations.extend(decode(_native.trace_take(handle)))
            _native.trace_stop(handle)
    finally:
        _native.positions(-1)


def is_failure(exc: BaseException) -> bool:
    """Whether an exception is a failure of the program; any other ends the exploration."""
    if isinstance(exc, Exception):
        unittest = sys.modules.get("unittest")
        return unittest is None or not isinstance(exc, unittest.SkipTest)
    return type(exc).__name__ == "Failed" and type(exc).__module__ == "_pytest.outcomes"


def failure_of(exc: BaseException, search: bool = True) -> Failure:
    """Return how a run failed, and whether other schedules are worth trying."""
    text: Any = str(exc) if type(exc).__name__ == "Failed" else ""
    ended = text.startswith("Timeout") and "timeout" in text.lower()
    return Failure.of(exc, search=search and not (ended or isinstance(exc, UnorderedAccessError)))
