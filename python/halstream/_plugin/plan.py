"""The plan for a test: options, ini keys and markers combined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from .._checks.suppress import from_environment
from .._errors import InvalidValueError, ScheduleError
from .._sites import real_torch

if TYPE_CHECKING:
    from .._checks.results import Result
    from .._schedules.token import Token

__all__ = [
    "DEFAULT_SCHEDULES", "FLAGS", "NUMBERS", "ORDERS", "PLAN", "REPLAYED", "RESULTS", "SLICES", "STREAMS", "TIMER",
    "Plan", "Streams", "item_plan", "plan_of",
]  # fmt: skip

#: Schedules of a marker that asks for nothing in particular.
DEFAULT_SCHEDULES = 50

#: The keys of a plan whose values are whole numbers, and those that are switched on or off.
NUMBERS = ("schedules", "depth", "seed", "prove")
FLAGS = ("sanitize", "strict", "pages", "compiled", "leaks", "threads")


@dataclass(frozen=True)
class Plan:
    """How a test is to be run."""

    schedules: int = 0  #: 0: it runs as always
    depth: int = 3
    seed: int = 0
    prove: int = 0  #: run all orders that can make a difference, up to so many
    token: Token | None = None
    sanitize: bool = False
    real_threads: bool = False  #: the sanitizer leaves the device on real threads
    strict: bool = False  #: sanitize, and fail for functions whose accesses are not known
    pages: bool = False  #: sanitize, and see by their pages the accesses that nobody declares
    compiled: bool = False  #: sanitize, as the program is written and then as torch.compile compiles it
    leaks: bool = False
    threads: bool = False  #: host threads take turns, too
    first: int = 0  #: number of the first schedule, for a test whose schedules are run in parts
    shrink: bool = True  #: make a failing schedule small

    @property
    def idle(self) -> bool:
        """Whether the test runs unchanged."""
        return not (self.ordered or self.sanitized or self.leaks)

    @property
    def sanitized(self) -> bool:
        """Whether the test runs under the sanitizer."""
        return self.sanitize or self.strict or self.pages or self.compiled

    @property
    def in_order(self) -> bool:
        """Whether the sanitizer has the device run operations in the order of the calls."""
        return self.sanitized and not (self.ordered or self.real_threads or real_torch.works)

    @property
    def ordered(self) -> bool:
        """Whether the test runs under deterministic schedules."""
        return bool(self.schedules or self.prove or self.token)


@dataclass
class Streams:
    """What the fixture `streams` gives.

    Attributes
    ----------
    schedule : str
        The one in force, such as ``pct 7 3 240``; ``fifo`` under the sanitizer, else ``parallel``, if none
        was asked for.
    run : int
        How often the test has run, this run included.
    seed : int
        Of the exploration.
    """

    schedule: str = "parallel"
    run: int = 1
    seed: int = 0
    notes: list[str] = field(default_factory=list)

    def note(self, text: object) -> None:
        """Add a line to what is shown if this run is the one that fails."""
        self.notes.append(str(text))


#: The property of a report that says how many orders a test was run in.
ORDERS = "stream_orders"
#: The property of a report that says what became of a token that no longer fails.
REPLAYED = "stream_replayed"
#: In the stash of a `pytest.Config`: the plan of the command line and the ini file.
PLAN = pytest.StashKey[Plan]()
#: In the stash of a `pytest.Config`, under a campaign: what replaces the plan of a test, by the id of its item.
SLICES = pytest.StashKey[dict[str, Mapping[str, Any]]]()
#: In the stash of a `pytest.Config`, where reports were asked for: the results of all tests so far.
RESULTS = pytest.StashKey[list["Result"]]()
#: In the stash of an item: what its fixture `streams` gives.
STREAMS = pytest.StashKey[Streams]()
#: In the stash of an item: the settings of pytest-timeout for it.
TIMER = pytest.StashKey[Any]()


def plan_of(given: Mapping[str, Any], otherwise: Plan, source: str = "") -> Plan:
    """Return a plan with what was given, checked.

    Raises
    ------
    UsageError
        With what is wrong, and where it stands.
    """
    from .._schedules.search import Settings
    from .._schedules.token import Token

    values: dict[str, Any] = {name: given[name] for name in (*NUMBERS, *FLAGS) if name in given}
    if values.get("sanitize") == "threads":
        values |= {"sanitize": True, "real_threads": True}
    try:
        if "replay" in given:
            values["token"] = Token.parse(given["replay"])
        plan = Plan(**{**vars(otherwise), **values})
        if plan.threads and not plan.ordered:
            plan = replace(plan, schedules=DEFAULT_SCHEDULES)
        schedules = plan.schedules if "schedules" in given or plan.schedules else 1
        Settings(schedules, plan.depth, plan.seed, prove=plan.prove, threads=plan.threads)
    except (ScheduleError, TypeError) as exc:
        raise pytest.UsageError(f"{source or 'streams'}: {exc}") from None
    if plan.sanitized:
        _check_suppressions()
    for name in FLAGS:
        if not isinstance(values.get(name, False), bool):
            also = "" if name != "sanitize" else " or 'threads'"
            raise pytest.UsageError(f"{source or 'streams'}: {name} must be True or False{also}, not {values[name]!r}")
    return plan


def _check_suppressions() -> None:
    """Refuse a file of suppressions that cannot be read before a test is run."""
    try:
        from_environment()
    except InvalidValueError as exc:
        raise pytest.UsageError(f"HALSTREAM_SUPPRESSIONS: {exc}") from None


def item_plan(item: pytest.Item) -> Plan:
    """Return what shall be done with a test, its markers included.

    Raises
    ------
    UsageError
        If a marker is wrong.
    """
    part = item.config.stash.get(SLICES, {}).get(item.nodeid)
    plan = _marked_plan(item)
    return plan if part is None else replace(plan, token=None, prove=0, **part)


def _marked_plan(item: pytest.Item) -> Plan:
    plan = item.config.stash[PLAN]
    given: dict[str, Any] = {}
    marked = False
    for mark in item.iter_markers("streams"):
        marked = True
        source = f"{item.nodeid}: @pytest.mark.streams"
        if mark.args:
            raise pytest.UsageError(f"{source} takes keywords only, for example streams(schedules=50)")
        for name, value in mark.kwargs.items():
            if name not in (*NUMBERS, *FLAGS):
                known = ", ".join((*NUMBERS, *FLAGS))
                raise pytest.UsageError(f"{source} has no keyword {name!r}; it takes {known}")
            given.setdefault(name, value)
    if not marked:
        return plan
    if not given and not plan.schedules and not plan.prove:
        given["schedules"] = DEFAULT_SCHEDULES
    return plan_of(given, plan, f"{item.nodeid}: @pytest.mark.streams")
