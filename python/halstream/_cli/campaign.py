"""The command `halstream campaign`."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .._campaign import engines
from .._campaign.campaign import collect, run
from .._campaign.child import CampaignError
from .._campaign.state import Settings, State, Test
from .._errors import ScheduleError
from .._schedules import search
from .terminal import bars, fail, put, say

__all__ = ["EXAMPLES", "campaign"]

EXAMPLES = """Examples:

halstream campaign tests/ --schedules 1e6

halstream campaign tests/ --schedules 1e6 --workers 8 -- -k streams

halstream campaign tests/ --schedules 1e8 --engine ray --workers 64

halstream campaign --resume"""

_FILE = "halstream-campaign.jsonl"
_SCHEDULES, _SLICE, _DEPTH = 10_000, 500, 3
#: Schedules that a campaign may run of each test.
_MOST = 10**12
_INTERRUPTED = 130
_FLAGS = ("sanitize", "strict", "leaks")


def campaign(
    tests: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TESTS]...", help="Files, folders and, after --, options of pytest."),
    ] = None,
    schedules: Annotated[
        str | None, typer.Option(metavar="N", help="Of each test; 1e6 and 1_000_000 are numbers, too. [10000]")
    ] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="How many. [processors]", min=1)] = None,
    engine: Annotated[
        str,
        typer.Option(metavar="NAME", help="What runs the workers: xdist, or ray, also on the machines of a cluster."),
    ] = "xdist",
    slice_: Annotated[
        str | None, typer.Option("--slice", metavar="N", help="Schedules that a worker runs in one go. [500]")
    ] = None,
    depth: Annotated[str | None, typer.Option(metavar="N", help="As of `run`. [3]")] = None,
    seed: Annotated[str | None, typer.Option(metavar="N", help="Another seed gives other schedules. [0]")] = None,
    sanitize: Annotated[bool, typer.Option("--sanitize", help="As --stream-sanitize of pytest.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="As --stream-strict of pytest.")] = False,
    leaks: Annotated[bool, typer.Option("--leaks", help="As --stream-leaks of pytest.")] = False,
    state: Annotated[str, typer.Option(metavar="FILE", help="What is done is kept in it.")] = _FILE,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the campaign of the state file, with its tests and numbers.")
    ] = False,
) -> None:
    """Run tests under very many schedules, divided among workers; an interrupted campaign continues with --resume.

    The exit code is 1 if a test failed, 2 if the campaign could not be carried out, 130 after Ctrl-C.
    """
    count = workers or os.cpu_count() or 1
    folder = os.getcwd()
    flags = [f"--stream-{name}" for name, given in zip(_FLAGS, (sanitize, strict, leaks), strict=True) if given]
    arguments = [*(tests or ()), *flags]
    try:
        numbers = {
            "schedules": _number("schedules", schedules, 1, _MOST),
            "slice": _number("slice", slice_, 1, search.MOST),
            "depth": _number("depth", depth, 1, 64),
            "seed": _number("seed", seed, 0, 2**63 - 1),
        }
        with contextlib.closing(State(state, resume)) as kept:
            settings = _settings(kept, arguments, numbers)
            _existing(settings.arguments)
            code = _carry_out(kept, settings, engine, count, folder)
    except (CampaignError, ScheduleError) as exc:
        fail(str(exc))
    except KeyboardInterrupt:
        begun = os.path.exists(state)
        say(f"interrupted; halstream campaign --resume{_elsewhere(state)} continues it" if begun else "interrupted")
        raise typer.Exit(_INTERRUPTED) from None
    raise typer.Exit(code)


def _elsewhere(state: str) -> str:
    return "" if state == _FILE else f" --state {shlex.quote(state)}"


def _number(name: str, text: str | None, least: int, most: int) -> int | None:
    """Return a whole number, of which 1e6 and 1_000_000 are forms."""
    if text is None:
        return None
    try:
        value = Decimal(text)
        if value.is_finite() and least <= value <= most and value == value.to_integral_value():
            return int(value)
    except InvalidOperation:
        pass
    raise ScheduleError(f"--{name} is {text!r}; give a whole number, {least} to {most:,}")


def _settings(kept: State, arguments: list[str], numbers: dict[str, int | None]) -> Settings:
    """Return what the campaign is: of a resumed one, what its file says where nothing else is given."""
    known = kept.settings or Settings([], _SCHEDULES, _SLICE, _DEPTH, 0)
    given = {name: getattr(known, name) if number is None else number for name, number in numbers.items()}
    return Settings(arguments or known.arguments, **given)


def _existing(arguments: list[str]) -> None:
    """Refuse a file or folder that is not there before anything is started or asked for.

    Words behind an option may be its value, and one that does not look like a path may be the name of a package
    (`--pyargs`): pytest says what is wrong with those.
    """
    for word in itertools.takewhile(lambda word: not word.startswith("-"), arguments):
        path = word.partition("::")[0]
        if (os.sep in path or path.endswith(".py")) and not os.path.exists(path):
            raise CampaignError(f"there is no file or folder {path!r}")


def _carry_out(kept: State, settings: Settings, engine: str, workers: int, folder: str) -> int:
    with contextlib.closing(engines.engine(engine, workers, folder)) as chosen, _bar() as progress:
        names, others = collect(settings.arguments, folder)
        kept.begin(settings, names)
        total = progress.add_task("", total=settings.schedules * len(names))

        def show() -> None:
            done = sum(test.schedules for test in kept.tests.values())
            left = sum(settings.schedules - test.schedules for test in kept.tests.values() if not test.ended)
            failed = sum(test.failure is not None for test in kept.tests.values())
            progress.update(total, completed=done, total=done + left, description=f"{failed} failed")

        show()
        run(kept, chosen, workers, folder, show)
    put(_summary(list(kept.tests.values()), settings, f"{workers} workers", others))
    return int(any(test.failure for test in kept.tests.values()))


def _bar() -> Progress:
    console = bars()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _failure(test: Test, failure: dict[str, Any]) -> list[str]:
    where = f"schedule {failure['number'] + 1:,}, {test.schedules:,} were run"
    lines = [f"{test.name}: {failure['title']} ({where})"]
    if failure["token"]:
        replay = shlex.join(["pytest", test.name, f"--stream-replay={failure['token']}"])
        lines += [f"  {line}" for line in (failure.get("text") or f"Replay: {replay}").splitlines()]
    return lines


def _summary(tests: list[Test], settings: Settings, by: str, others: int) -> str:
    total = sum(test.schedules for test in tests)
    each = f"up to {settings.schedules:,} of each, seed {settings.seed}"
    lines = [f"{total:,} schedules of {len(tests)} tests, {each}, {by}"]
    for test in tests:
        if test.failure is not None:
            lines += ["", *_failure(test, test.failure)]
    counts = {
        "failed": sum(test.failure is not None for test in tests),
        "passed": sum(not test.ended for test in tests),
        "use no streams": sum(test.unused and not test.failure for test in tests),
        "skipped": sum(test.skipped and not test.failure and not test.unused for test in tests),
        "not run, as they are no functions": others,
    }
    return "\n".join([*lines, "", ", ".join(f"{count} {what}" for what, count in counts.items() if count)])
