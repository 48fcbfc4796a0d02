"""Which thread of the program runs next: the strategies, and the text that names one.

A strategy is asked at each point where more than one thread could go on. Its text is the
part of a spec behind ``@``: ``stay``, ``random 7``, ``pct 7 3 40`` or ``turns 2.5>1``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .._errors import ScheduleError

__all__ = ["AFTER", "STAY", "Strategy", "Turn", "join", "parse_turns", "split", "strategy", "turns_text"]

#: The strategy under which a thread runs until it cannot go on.
STAY = "stay"
#: Points in a row that a thread may pass while others could go on: one that asks again and
#: again for what another thread does would never end otherwise.
AFTER = 100

_MOST_TURNS = 4096
_MOST = 2**31 - 1
_TURN = re.compile(r"(\d+)\.(\d+)>(\d+)")

#: Given the thread at the point (0 for none), the number of its point, who can go on and who does so by
#: default; returns the next one.
Strategy = Callable[[int, int, Sequence[int], int], int]


class Turn(NamedTuple):
    """A departure from `STAY`: at its point `point`, thread `thread` lets thread `other` go on."""

    thread: int
    point: int
    other: int

    def __str__(self) -> str:
        return f"{self.thread}.{self.point}>{self.other}"


def split(spec: str) -> tuple[str, str]:
    """Return the part of a spec for the device and the one for threads, '' if it has none."""
    device, _, threads = spec.partition("@")
    return device.strip(), threads.strip()


def join(device: str, threads: str) -> str:
    """Return the spec of both parts."""
    return f"{device} @ {threads}" if threads else device


def stay(thread: int, candidates: Sequence[int]) -> int:
    """Return who goes on by default: the thread itself, otherwise the next one by number."""
    if thread in candidates:
        return thread
    return min((one for one in candidates if one > thread), default=min(candidates))


def turns_text(turns: Sequence[Turn]) -> str:
    """Return the strategy that makes these departures."""
    return f"turns {','.join(map(str, turns))}" if turns else STAY


def parse_turns(text: str) -> tuple[Turn, ...]:
    """Return the departures that the text of a strategy names; none where it names none."""
    kind, _, rest = text.partition(" ")
    if kind != "turns":
        return ()
    turns = []
    for part in rest.replace(" ", "").split(","):
        found = _TURN.fullmatch(part)
        if found is None:
            raise ScheduleError(f"{part[:40]!r} is no turn of threads; give for example 1.5>2")
        turns.append(Turn(*map(int, found.groups())))
    if len(turns) > _MOST_TURNS or any(max(turn) > _MOST for turn in turns):
        raise ScheduleError(f"there are more than {_MOST_TURNS} turns of threads, or a number above {_MOST}")
    return tuple(turns)


def strategy(text: str) -> Strategy:
    """Return the strategy of a text.

    Raises
    ------
    ScheduleError
        If there is none of this name, or its numbers are wrong.
    """
    kind, _, rest = text.partition(" ")
    if kind == STAY and not rest:
        return lambda thread, point, candidates, usual: usual
    if kind == "turns":
        known = {(turn.thread, turn.point): turn.other for turn in parse_turns(text)}

        def recorded(thread: int, point: int, candidates: Sequence[int], usual: int) -> int:
            other = known.get((thread, point), 0)
            return other if other in candidates else usual

        return recorded
    numbers = rest.split()
    if not all(re.fullmatch("[0-9]{1,20}", number) for number in numbers):
        numbers = []
    if kind == "random" and len(numbers) == 1:
        choose = random.Random(int(numbers[0]))
        return lambda thread, point, candidates, usual: candidates[int(choose.random() * len(candidates))]
    if kind == "pct" and len(numbers) == 3:
        return _priorities(*map(int, numbers))
    raise ScheduleError(
        f"there is no strategy {text[:60]!r} for threads; give stay, random N, pct N DEPTH POINTS or turns"
    )


def _priorities(seed: int, depth: int, points: int) -> Strategy:
    """Return the strategy of PCT: the thread of the highest priority; at `depth` - 1 points one falls to the end."""
    if not 1 <= depth <= 64 or not 1 <= points <= _MOST:
        raise ScheduleError(f"pct of threads has depth {depth} and {points} points")
    source = random.Random(seed)
    changes = [int(source.random() * points) + 1 for _ in range(depth - 1)]
    priorities: dict[int, float] = {}
    passed = 0

    def highest(thread: int, point: int, candidates: Sequence[int], usual: int) -> int:
        nonlocal passed
        passed += 1
        for one in candidates:
            if one not in priorities:
                priorities[one] = source.random()
        if passed in changes and thread in priorities:
            priorities[thread] = -float(passed)
        return max(candidates, key=lambda one: priorities[one])

    return highest
