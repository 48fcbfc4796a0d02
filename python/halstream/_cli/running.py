"""The commands `halstream run` and `halstream replay`."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .._checks import nearby
from .._checks.handed import collect, want
from .._checks.report import ON_THREADS, explanations
from .._checks.results import Result, failing_schedule, of_exception, of_finding, under_schedule
from .._checks.terminated import before_sigterm
from .._errors import HalError, ScheduleError, UnorderedAccessError
from .._notes import explanation
from .._schedules.block import stale
from .._schedules.explain import explain, nondeterminism, sequence_of
from .._schedules.replay import replay_changed
from .._schedules.search import Explored, Found, Settings, search, worth_keeping
from .._schedules.token import Token
from .._sites import Frame, real_torch
from .._stalls import leaks as _leaks
from .._traces.opening import at_opening
from . import script as _script
from .children import UNKNOWN, CannotRunError, Children, Options
from .redirecting import plug_into_paddle, provide_driver, redirect_torch
from .remembered import forget, recall, remember
from .terminal import say

if TYPE_CHECKING:
    from .._checks.report import Report

__all__ = ["SCHEDULES", "CannotRunError", "Options", "explore", "plain", "replay", "replay_command", "searching"]

#: How many schedules `--threads` asks for where nothing else is said.
SCHEDULES = 50
_STARTED = (
    "processes that it started, which run in their own order: for schedules call in the script itself what they run, "
    "as with a single rank; --sanitize looks at each of them"
)
# Lines of what a failing run printed.
_MOST = 200
# Seconds that a run may take which looks for the operations of a token.
_LIMIT = 60.0


def plain(script: str, args: Sequence[str], options: Options, *, leaks: bool, into: list[Result] | None = None) -> int:
    """Run a script once, in this process.

    Parameters
    ----------
    script : str
    args : sequence of str
        Of the script.
    options : Options
    leaks : bool
        Report at the end of the process the objects that the script made and did not release.
    into : list of Result, optional
        Gets what the sanitizer finds.

    Returns
    -------
    int
        The script's exit code; where that is 0, 1 if the sanitizer found something. What is left is known only
        at the exit of the interpreter, and replaces an exit code of 0 by 1 then.

    Raises
    ------
    CannotRunError
        If torch cannot be redirected, or Paddle cannot have the device.
    """
    stack, own = contextlib.ExitStack(), contextlib.ExitStack()
    started = own.enter_context(_in_started(options))
    tracked = found_something = False
    reports: list[Report] = []

    def end() -> None:
        """End the sanitizer, and print what it found: also what only a query or the timing of the host orders."""
        nonlocal found_something
        try:
            stack.close()
        except UnorderedAccessError as exc:
            print(exc, *explanations(reports[-1].all), sep="\n", file=sys.stderr)
            found_something = True
        else:
            if reports and (reports[-1].all or reports[-1].by_library):
                print(reports[-1], *explanations(reports[-1].all), sep="\n", file=sys.stderr)

    def end_all() -> None:
        end()
        started()
        own.close()

    def begin() -> None:
        nonlocal tracked
        if leaks and tracked:
            _leaks.stop()  # of the backend before this one
            _leaks.tracking()
        elif leaks:
            _leaks.at_exit(1)
            tracked = True
        if options.sanitize:
            from .._checks.sanitize import sanitize as sanitizer

            with contextlib.suppress(HalError):
                end()
            scope = sanitizer(on="raise", strict=options.strict, pages=options.pages, threads=options.real_threads)
            reports.append(stack.enter_context(scope))
            before_sigterm(end_all)

    if options.sanitize or leaks:
        at_opening(begin)
    if options.torch:
        redirect_torch(CannotRunError, sanitize=options.sanitize)
    if options.paddle:
        plug_into_paddle(CannotRunError, sanitize=options.sanitize)
    if options.cuda:
        provide_driver(CannotRunError)
    failed: list[Result] = []
    with own, contextlib.nullcontext() if into is None else _assertions_of_functions(failed):
        outcome = _script.run(script, args, options.module)
        end()
        of_started = started()
        if real_torch.works and any(report.functions.some_unseen for report in reports):
            say(f"{ON_THREADS} --schedules 1")
        code = outcome.code or int(found_something or bool(of_started))
    if into is not None:
        into += failed
        code = code or int(bool(failed))
        into += [of_finding(finding) for report in reports for finding in report.all]
        into += of_started
        found = None if outcome.error is None else of_exception(outcome.error)
        into += [found] if found else []
    return code


@contextlib.contextmanager
def _in_started(options: Options) -> Iterator[Callable[[], list[Result]]]:
    """Give the function that prints, once, what was found in processes that the script starts, and returns it."""
    if not options.sanitize or not (options.torch or options.paddle):
        yield list
        return
    with tempfile.TemporaryDirectory(prefix="halstream-") as folder:
        want(folder)

        def printed() -> list[Result]:
            found = collect(folder)
            for result in found:
                print(result["text"], file=sys.stderr)
            return found

        yield printed


@contextlib.contextmanager
def _assertions_of_functions(into: list[Result]) -> Iterator[None]:
    """Take assertions of functions on streams, which no call raises, as results; they are printed as always."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        exc = unraisable.exc_value
        found = None if exc is None else of_exception(exc)
        if found is not None and found["rule"] == "assertion":
            into.append(found)
        before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        if sys.unraisablehook is hook:
            sys.unraisablehook = before


def replay_command(token: str, script: str, args: Sequence[str], options: Options) -> str:
    """Return what a user types to see a failure again."""
    flags = ("sanitize", "strict", "pages", "torch", "paddle", "cuda")
    given = [f"--{name}" for name in flags if getattr(options, name)] + ["-m"] * options.module
    return shlex.join(["halstream", "replay", *given, token, script, *args])


def explore(
    script: str,
    args: Sequence[str],
    settings: Settings,
    options: Options,
    *,
    write: Callable[[str], None],
    console: Console,
    into: list[Result] | None = None,
) -> int:
    """Run a script under many schedules and say what fails.

    Parameters
    ----------
    script : str
    args : sequence of str
        Of the script.
    settings : Settings
    options : Options
    write : callable
        Prints text on stdout.
    console : Console
        For the display of progress.
    into : list of Result, optional
        Gets what is found.

    Returns
    -------
    int
        1 if a schedule makes the script fail, else 0.

    Raises
    ------
    CannotRunError
        If the script cannot be run under schedules at all.
    """
    with searching(console, settings) as announce:
        children = Children(script, args, options, announce)
        found, explored = search(children, settings, recall(script, args, options))
    if found is None:
        forget(script, args, options)
        write(_passed(explored, children.elsewhere))
        return 0
    if worth_keeping(found):
        remember(script, args, options, found.token)
    report = _report(found, children, replay_command(str(found.token), script, args, options))
    write(report)
    if into is not None:
        into += children.results or [_result(found, report, script, children, options)]
    return 1


@contextlib.contextmanager
def searching(console: Console, settings: Settings) -> Iterator[Callable[[str], None]]:
    """Display progress; give the function that is called with the spec of each run before it."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("fifo", total=settings.schedules)
        begun = 0

        def announce(spec: str) -> None:
            nonlocal begun
            name = spec if len(spec) <= 40 else f"{spec[:37]}..."
            progress.update(task, description=name, completed=min(begun, settings.schedules))
            begun += 1

        yield announce


def _result(found: Found, report: str, script: str, children: Children, options: Options) -> Result:
    place = None if options.module else Frame(os.path.abspath(script), 1, "<module>")
    timeline = sequence_of(found, children.text) if nearby.wanted() else None
    if children.fault is not None:
        return under_schedule(children.fault, report, str(found.token), timeline)
    return failing_schedule(str(found.execution.failure), report, place, "", str(found.token), timeline)


def _passed(explored: Explored, elsewhere: bool) -> str:
    """Return what to print of a script that passed; `elsewhere`: streams were used in processes that it started."""
    if not explored.steps and elsewhere:
        return f"halstream: the script passed, but its streams are those of {_STARTED}"
    if not explored.steps:
        return "halstream: the script passed and uses no streams, so that one run says it all"
    passed = (
        f"halstream: the script passed under {explored.schedules} schedule(s) "
        f"({explored.streams} stream(s), {explored.steps} steps)"
    )
    return f"{passed}\nhalstream: not under them were the streams of {_STARTED}" if elsewhere else passed


def _report(found: Found, children: Children, command: str) -> str:
    """Return what to print about a failure: what the script printed, how it failed, and why."""
    lines = children.output.rstrip().splitlines()
    left = len(lines) - _MOST
    parts = [f"... {left} line(s) left out"] * (left > 0) + lines[-_MOST:] + [""] * bool(lines)
    parts.append(f"halstream: the script failed: {found.execution.failure}")
    parts.append(nondeterminism(found) if found.difference else explain(found, replay=command, text=children.text))
    of_order = found.execution.failure is not None and found.execution.failure.search and not found.difference
    codes = dict.fromkeys([one["code"] for one in children.results] or ["schedule-failure"] * of_order)
    return "\n".join([*parts, *map(explanation, codes)])


def replay(
    text: str,
    script: str,
    args: Sequence[str],
    options: Options,
    *,
    say: Callable[[str], None],
) -> int:
    """Run a script under the schedule of a token, on this process's terminal.

    Returns
    -------
    int
        0 if it does not fail; else its exit code, or 1 where that is 0.

    Raises
    ------
    ScheduleError
        If the token cannot be read, or is of a program with other operations.
    CannotRunError
        If the script cannot be run under schedules at all.
    """
    token = Token.parse(text)
    children = Children(script, args, options._replace(limit=_LIMIT))  # of the runs that are not attached
    execution, code = children.attached(token.spec)
    # A process that crashed has said nothing of its operations.
    crashed = execution.failure is not None and not execution.failure.search
    unknown = token.fingerprint == UNKNOWN[:8] or (crashed and execution.fingerprint == UNKNOWN)
    if not unknown and (why := stale(token, execution.fingerprint)):
        changed = replay_changed(children, token, children.text)
        if changed is not None:
            if changed.execution.failure is None:
                say(changed.verdict)
                return 0
            print(children.output, end="")
            say(f"{changed.verdict}: {changed.execution.failure}")
            return 1
        ended = f"it failed, with {execution.failure}" if execution.failure else "it passed"
        raise ScheduleError(f"{ended}, but {why}")
    if execution.failure is None:
        say(f"under {token} the script passes")
        return 0
    say(f"under {token} the script failed again: {execution.failure}")
    return code if code > 0 else 1
