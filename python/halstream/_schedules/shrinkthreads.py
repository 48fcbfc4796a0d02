"""Makes the turns of host threads in a failing run few."""

from __future__ import annotations

from collections.abc import Callable

from .execution import Execution
from .shrink import Budget, Spent
from .turns import Turn, join, parse_turns, split, turns_text

__all__ = ["shrink_threads"]


def shrink_threads(run: Callable[[str], Execution], failing: Execution, budget: Budget) -> Execution:
    """Return the run with the fewest departures from the default turns that fails in the same way.

    The device runs in the order of the calls where that is enough.

    Parameters
    ----------
    run : function
        Runs the program under a spec.
    failing : Execution
        The one that failed.
    budget : Budget
        For the runs that this makes.
    """
    best = failing

    def fails(device: str, turns: tuple[Turn, ...]) -> bool:
        nonlocal best
        budget.take()
        execution = run(join(device, turns_text(turns)))
        if execution.failure != failing.failure or execution.uncontrolled:
            return False
        best = execution
        return True

    try:
        turns = parse_turns(failing.turns)
        device = split(failing.spec)[0]
        if device != "fifo" and fails("fifo", turns):
            device = "fifo"
        elif not fails(device, turns):
            return failing
        size = max(1, len(turns) // 2)
        while turns:
            for start in range(0, len(turns), size):
                fewer = turns[:start] + turns[start + size :]
                if fails(device, fewer):
                    turns = fewer
                    break
            else:
                if size == 1:
                    break
                size //= 2
            size = max(1, min(size, len(turns)))
    except Spent:
        pass
    return best
