"""The plugin of pytest: tests of stream programs under many schedules.

It is found by itself where halstream is installed; ``-p no:halstream`` switches
it off. Nothing is loaded and nothing runs until an option, an ini key or a
marker asks for it.

- ``--stream-schedules=N``: run each test under N schedules, setup and teardown
  included; a test that uses no streams runs once.
- ``--stream-depth``, ``--stream-seed``: of the random ones.
- ``--stream-replay=TOKEN``: run each test under the schedule of a token.
- ``--stream-sanitize``: fail tests with unordered accesses.
- ``--stream-leaks``: fail tests that leave streams, events, memory or work.

The ini keys have the same names with underscores, and ``@pytest.mark.streams``
takes them as keywords, without ``stream_``. The marker of a test goes before
the command line, and that before the ini file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._schedules.token import Token

__all__ = ["Plan", "Streams"]

#: Schedules of a marker that asks for nothing in particular.
DEFAULT_SCHEDULES = 50

_HELP = {
    "schedules": "run each test under N schedules of the host device; the first failing one is shrunk and explained",
    "depth": "how many steps must come in a certain order for a fault that the random schedules look for (3)",
    "seed": "number that the random schedules are made from (0)",
    "replay": "run the tests under the schedule of this token, as a failure's report gives it",
    "sanitize": "fail tests in which two operations work on the same bytes with no order between them",
    "leaks": "fail tests that leave streams, events, memory or unfinished work",
}
_NUMBERS = ("schedules", "depth", "seed")
_FLAGS = ("sanitize", "leaks")
_MARKER = (
    "streams(schedules=N, depth=3, seed=0, sanitize=False, leaks=False): run the test under N schedules of the "
    "host device (50 if the marker is bare), watch for unordered accesses and for what it leaves"
)


@dataclass(frozen=True)
class Plan:
    """What shall be done with a test."""

    schedules: int = 0  #: 0: it runs as always
    depth: int = 3
    seed: int = 0
    token: Token | None = None
    sanitize: bool = False
    leaks: bool = False

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.schedules or self.token or self.sanitize or self.leaks)


@dataclass
class Streams:
    """What the fixture `streams` gives.

    Attributes
    ----------
    schedule : str
        The one in force, such as ``pct 7 3 240``; ``parallel`` if none was asked for.
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


PLAN = pytest.StashKey[Plan]()
WRONG = pytest.StashKey[str]()
STREAMS = pytest.StashKey[Streams]()
TIMER = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("streams", "schedules of stream programs (halstream)")
    for name, text in _HELP.items():
        option, dest = f"--stream-{name}", f"stream_{name}"
        if name in _FLAGS:
            group.addoption(option, dest=dest, action="store_true", default=None, help=text)
            parser.addini(dest, text, type="bool", default=False)
        else:
            metavar = "TOKEN" if name == "replay" else "N"
            group.addoption(option, dest=dest, metavar=metavar, default=None, help=text)
            parser.addini(dest, text, default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    given: dict[str, Any] = {}
    for name in _HELP:
        value, source = config.getoption(f"stream_{name}"), f"--stream-{name}"
        if value is None:
            value, source = config.getini(f"stream_{name}"), f"stream_{name} in the ini file"
        elif value == "":  # of a variable of the shell that is not set, perhaps
            raise pytest.UsageError(f"{source} is empty; give a {'token' if name == 'replay' else 'whole number'}")
        if value not in ("", False):
            given[name] = _number(value, source) if name in _NUMBERS else value
    config.stash[PLAN] = plan_of(given, Plan()) if given else Plan()


def _number(text: str, source: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"{source} is {text!r}; give a whole number") from None


def plan_of(given: Mapping[str, Any], otherwise: Plan, source: str = "") -> Plan:
    """Return a plan with what was given, checked.

    Raises
    ------
    UsageError
        With what is wrong, and where it stands.
    """
    from ._errors import ScheduleError
    from ._schedules.search import Settings
    from ._schedules.token import Token

    values: dict[str, Any] = {name: given[name] for name in (*_NUMBERS, *_FLAGS) if name in given}
    try:
        if "replay" in given:
            values["token"] = Token.parse(given["replay"])
        plan = Plan(**{**vars(otherwise), **values})
        schedules = plan.schedules if "schedules" in given or plan.schedules else 1
        Settings(schedules, plan.depth, plan.seed)
    except (ScheduleError, TypeError) as exc:
        raise pytest.UsageError(f"{source or 'streams'}: {exc}") from None
    for name in _FLAGS:
        if not isinstance(values.get(name, False), bool):
            raise pytest.UsageError(f"{source or 'streams'}: {name} must be True or False, not {values[name]!r}")
    return plan


def item_plan(item: pytest.Item) -> Plan:
    """Return what shall be done with a test, its markers included.

    Raises
    ------
    UsageError
        If a marker is wrong.
    """
    plan = item.config.stash[PLAN]
    given: dict[str, Any] = {}
    marked = False
    for mark in item.iter_markers("streams"):
        marked = True
        source = f"{item.nodeid}: @pytest.mark.streams"
        if mark.args:
            raise pytest.UsageError(f"{source} takes keywords only, for example streams(schedules=50)")
        for name, value in mark.kwargs.items():
            if name not in (*_NUMBERS, *_FLAGS):
                known = ", ".join((*_NUMBERS, *_FLAGS))
                raise pytest.UsageError(f"{source} has no keyword {name!r}; it takes {known}")
            given.setdefault(name, value)
    if not marked:
        return plan
    if not given and not plan.schedules:
        given["schedules"] = DEFAULT_SCHEDULES
    return plan_of(given, plan, f"{item.nodeid}: @pytest.mark.streams")


def pytest_report_header(config: pytest.Config) -> str | None:
    plan = config.stash[PLAN]
    parts = []
    if plan.token:
        parts.append(f"replay {plan.token}")
    elif plan.schedules:
        parts.append(f"{plan.schedules} schedules, depth {plan.depth}, seed {plan.seed}")
    parts += [name for name in _FLAGS if getattr(plan, name)]
    return "streams: " + ", ".join(parts) if parts else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("streams") is not None:
            try:
                item_plan(item)
            except pytest.UsageError as exc:
                if not hasattr(config, "workerinput"):
                    raise
                # A worker of xdist cannot refuse to work; the test fails instead.
                item.stash[WRONG] = str(exc)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    # Items that are not functions, such as doctests, cannot be run again.
    if not isinstance(item, pytest.Function):
        return None
    wrong = item.stash.get(WRONG, "")
    plan = Plan() if wrong else item_plan(item)
    if plan.idle and not wrong:
        return None
    from ._plugin.item import run_test

    run_test(item, nextitem, plan, wrong)
    return True


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    # Kept so that each run of a test gets the whole time (pytest-timeout).
    item.stash[TIMER] = settings


@pytest.fixture
def streams(request: pytest.FixtureRequest) -> Streams:
    """The schedule that the test runs under: `schedule`, `run`, `seed`, and `note(text)` for the report."""
    found: Streams = request.node.stash.get(STREAMS, None) or Streams()
    return found
