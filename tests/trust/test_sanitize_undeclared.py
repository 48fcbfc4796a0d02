"""Random programs whose functions declare nothing: what is ordered is never reported, what is not is."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import halstream as hs
import numpy as np
import pytest
from halstream._schedules.block import schedule
from reach_help import LIMIT

pytestmark = pytest.mark.needs("schedules")

SIZE = 32
PROGRAMS = 40


class Holder:
    """What functions are methods of: some of its arrays are touched, the others only reachable."""

    def __init__(self, views: list[Any], mine: int, part: slice) -> None:
        self.views, self.mine, self.part = views, views[mine], part

    def total(self) -> object:
        return self.mine.sum()

    def fill(self) -> None:
        self.mine[self.part] += 1

    def chosen(self, number: int) -> None:
        self.views[number][self.part] += 1


class Step(NamedTuple):
    """A function, and the bytes that it touches."""

    function: Callable[[], Any]
    array: int
    part: slice
    writes: bool
    seen: bool  # whether the sanitizer can know

    def conflicts(self, other: Step) -> bool:
        here, there = (set(range(SIZE)[step.part]) for step in (self, other))
        return self.array == other.array and (self.writes or other.writes) and bool(here & there)


def _step(views: list[Any], rng: random.Random) -> Step:
    n = rng.randrange(len(views))
    view = views[n]
    begin = rng.randrange(0, SIZE, 4)
    part = slice(begin, begin + rng.choice((4, 8)), rng.choice((1, 2)))
    whole = slice(None)
    both = rng.choice(views)

    def add() -> None:
        view[part] += 1

    def choose() -> None:
        (view if begin >= 0 else both)[part] += 1

    makers: list[Callable[[], Step]] = [
        lambda: Step(view.sum, n, whole, False, True),
        lambda: Step(lambda: view.sum(), n, whole, False, True),
        lambda: Step(lambda: view[part].sum(), n, part, False, False),
        lambda: Step(lambda: [views[n][part].sum() for _ in range(2)], n, part, False, False),
        lambda: Step(functools.partial(np.sum, view), n, whole, False, True),
        lambda: Step(Holder(views, n, part).total, n, whole, False, True),
        lambda: Step(Holder(views, n, part).fill, n, part, True, True),
        lambda: Step(functools.partial(Holder(views, 0, part).chosen, n), n, part, True, True),
        lambda: Step(add, n, part, True, True),
        lambda: Step(choose, n, part, True, True),
        lambda: Step(lambda: np.add(view, 1, out=view), n, whole, True, True),
        lambda: Step(lambda: view.shape, n, slice(0), False, True),
        lambda: Step(lambda: np.dot(view, view), n, whole, False, True),
        lambda: Step(lambda: np.take(view, [begin]), n, slice(begin, begin + 1), False, False),
        lambda: Step(lambda: view.reshape(8, 4)[begin // 4].sum(), n, slice(begin, begin + 4), False, False),
        lambda: Step(lambda: next(iter(view)), n, slice(0, 1), False, False),
        lambda: Step(lambda: view.item(begin), n, slice(begin, begin + 1), False, False),
        lambda: Step(lambda: np.add(view[part], 1, out=view[part]), n, part, True, True),
        lambda: Step(lambda: view.T.__setitem__(part, view.T[part] + 1), n, part, True, True),
        lambda: Step(lambda: np.zeros_like(view), n, slice(0), False, True),
    ]
    return rng.choice(makers)()


def run_program(seed: int, leave_out: bool) -> tuple[Any, bool]:
    """Run a program in which waits order all conflicts but one; return the report, and whether one was left out."""
    rng = random.Random(seed)
    left_out = False
    with schedule(rng.choice(("fifo", "latest", f"random {seed}"))), hs.sanitize(on="collect") as report:
        streams = [hs.Stream(non_blocking=True) for _ in range(3)]
        arrays = [hs.zeros(SIZE, np.uint8) for _ in range(3)]
        hs.synchronize(timeout=LIMIT)
        views = [np.asarray(x) for x in arrays]
        done: list[tuple[Step, int, int]] = []
        # What each stream comes after: how many steps of every stream.
        after = [[0] * len(streams) for _ in streams]
        for _ in range(rng.randrange(4, 14)):
            step, s = _step(views, rng), rng.randrange(len(streams))
            for earlier, on, number in done:
                if on == s or number < after[s][on] or not step.conflicts(earlier):
                    continue
                if leave_out and not left_out and step.seen and earlier.seen:
                    left_out = True
                    break
                streams[s].wait(streams[on].record())
                after[s] = [max(pair) for pair in zip(after[s], after[on], strict=True)]
            streams[s].call(step.function)
            after[s][s] += 1
            done.append((step, s, after[s][s] - 1))
            if left_out:
                break  # a later wait could order what was left out
        for stream in itertools.chain(streams):
            stream.synchronize(timeout=LIMIT)
    return report, left_out


def test_V1_programs_of_undeclared_functions_whose_conflicts_are_ordered_are_never_reported(backend: str) -> None:
    for seed in range(PROGRAMS):
        report, _ = run_program(seed, leave_out=False)
        assert not report.all, f"seed {seed}: {report}"


def test_V1_a_conflict_of_undeclared_functions_without_a_wait_is_reported(backend: str) -> None:
    tried = 0
    for seed in range(PROGRAMS):
        report, left_out = run_program(seed, leave_out=True)
        assert bool(report.races) == left_out, f"seed {seed}"
        tried += left_out
    assert tried > PROGRAMS / 4
