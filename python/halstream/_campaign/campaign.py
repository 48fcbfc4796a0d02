"""A campaign: rounds of parts on an engine, until each test has run all its schedules or has failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .child import CampaignError, session
from .engines import Engine
from .state import Settings, State, Test

__all__ = ["collect", "rounds", "run"]

#: Parts for each worker in the first round after that with the first part of each test, and the most in a round.
_FIRST, _MOST = 8, 16_384
#: Processes that a part may end before its test counts as failed.
_LOSSES = 3


def collect(arguments: Sequence[str], folder: str) -> tuple[list[str], int]:
    """Return the tests of a campaign, and how many others there are, such as doctests, which have no schedules.

    Raises
    ------
    CampaignError
        If there are none, or pytest refuses the arguments.
    """
    for answer in session(arguments, None, folder=folder):
        if answer["kind"] == "collected" and answer["tests"]:
            return answer["tests"], answer["others"]
    raise CampaignError(f"no tests are collected from {' '.join(arguments) or folder}")


def run(state: State, engine: Engine, workers: int, folder: str, progress: Callable[[], object]) -> None:
    """Run what is left of a campaign, and make each failing schedule small, once.

    Parameters
    ----------
    state : State
    engine : Engine
    workers : int
        Of the engine; rounds are sized by it.
    folder : str
        Where pytest is started.
    progress : function
        Called after each answer.

    Raises
    ------
    CampaignError
        If the engine cannot run the tests.
    """
    settings = state.settings
    assert settings is not None
    losses: Counter[tuple[str, int]] = Counter()
    for parts in rounds(state, workers):
        moved = False
        for answer in engine.run(settings.arguments, parts):
            key = answer.get("test", ""), answer.get("first", 0)
            if answer["kind"] == "done":
                moved = state.add(answer) or moved
            elif answer["kind"] == "lost":
                moved = True
                losses[key] += 1
                if losses[key] == _LOSSES:
                    state.add(_ended(*key))
            progress()
        if not moved:
            names = ", ".join(dict.fromkeys(part["test"] for part in parts[:3]))
            raise CampaignError(f"no worker runs {names}: names of tests must be the same in every process")
    _shrink(state, settings, folder, progress)
    state.finish()


def _ended(test: str, first: int) -> dict[str, Any]:
    title = f"the process ended, {_LOSSES} times, in the schedules from number {first} on"
    return {"kind": "done", "test": test, "first": first, "schedules": 0, "used": True, "skipped": False} | {
        "title": title,
        "number": first,
        "token": "",
    }


def rounds(state: State, workers: int) -> Iterator[list[dict[str, Any]]]:
    """Yield parts that are not done, first the first one of each test, which shows what uses no streams."""
    assert state.settings is not None
    size = max(1, workers) * _FIRST
    while True:
        parts = [_part(state.settings, test, 0) for test in state.tests.values() if 0 not in test.done]
        if not parts:
            parts = list(_next(state, state.settings, size))
            size = min(2 * size, _MOST)
        if not parts:
            return
        yield parts


def _next(state: State, settings: Settings, most: int) -> Iterator[dict[str, Any]]:
    """Yield the next parts of the tests that have not ended, of all tests in turns."""
    left = {test.name: _left(test, settings) for test in state.tests.values() if not test.ended}
    while left:
        for name, firsts in list(left.items()):
            first = next(firsts, None)
            if first is None:
                del left[name]
            elif most > 0:
                most -= 1
                yield _part(settings, state.tests[name], first)
            else:
                return


def _left(test: Test, settings: Settings) -> Iterator[int]:
    return (first for first in range(0, settings.schedules, settings.slice) if first not in test.done)


def _part(settings: Settings, test: Test, first: int) -> dict[str, Any]:
    count = min(settings.slice, settings.schedules - first)
    return _request(settings, test.name, first, count, shrink=False)


def _request(settings: Settings, test: str, first: int, count: int, shrink: bool) -> dict[str, Any]:
    part = {"test": test, "first": first, "schedules": count, "shrink": shrink}
    return part | {"depth": settings.depth, "seed": settings.seed}


def _shrink(state: State, settings: Settings, folder: str, progress: Callable[[], object]) -> None:
    """Run each failing schedule again, on this machine, and make it small; pytest remembers the token."""
    failed = [test for test in state.tests.values() if test.failure and test.failure["token"] and not test.shrunk]
    if not failed:
        return
    numbers = {test.name: test.failure["number"] for test in failed if test.failure}
    parts = [_request(settings, name, number, 1, shrink=True) for name, number in numbers.items()]
    for answer in session(settings.arguments, parts, folder=folder, cache=True):
        if answer["kind"] == "done":
            state.add({"kind": "shrunk", **{name: answer.get(name, "") for name in ("test", "token", "text")}})
            progress()
