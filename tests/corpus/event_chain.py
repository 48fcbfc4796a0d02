"""One event stands for the last use of a buffer, and a second use replaces the first.

Seen: use after free and corrupted grids: a record moves an event, it does not
add to it, so the owner waited for the stream that used the buffer last and not
for the other one (AcademySoftwareFoundation/openvdb #2287).
Missing: the second stream waits for the event before it records it again.
Passes by luck: the first reader was enqueued long before, on an idle stream.
"""

from __future__ import annotations

from halstream.cupy import cuda

from ._host import LIMIT, Host, N, rest


def _run(ordered: bool) -> None:
    host = Host()
    first, second, owner = (cuda.Stream(non_blocking=True) for _ in range(3))
    grid, left, right = host.numbers(2), host.numbers(0), host.numbers(0)
    used = cuda.Event(disable_timing=True)
    try:
        host.parse()
        left.copy_from(grid, first)
        used.record(first)
        right.copy_from(grid, second)
        if ordered:
            second.wait_event(used)
        used.record(second)
        host.step()
        owner.wait_event(used)
        grid.fill(9, owner)
        owner.synchronize(timeout=LIMIT)
        assert left.numpy(first).tolist() == [2] * N
        assert right.numpy(second).tolist() == [2] * N
    finally:
        rest(first, second, owner)


def broken() -> None:
    """Run with the first use forgotten."""
    _run(ordered=False)


def fixed() -> None:
    """Run with one use behind the other."""
    _run(ordered=True)
