"""Write after read across streams in an overlap scheduler.

Seen: flaky accuracy of a language model server that prepares the next step
while the forward pass of this one runs: the scheduler's stream changes a page
table that the pass still reads (sgl-project/sglang #26380).
Missing: the scheduler's stream does not wait for the pass.
Passes by luck: the pass is enqueued first and its stream is idle, so it has
read the table long before the host has prepared the next step.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import LIMIT, Host, N, rest


def _run(ordered: bool) -> None:
    host = Host()
    schedule, forward = cuda.Stream(), cuda.Stream()
    pages, used = host.numbers(1), host.numbers(0)
    try:
        host.parse()
        used.copy_from(pages, forward)  # the pass of this step reads the table
        host.step()
        if ordered:
            schedule.wait_stream(forward)
        pages.fill(2, schedule)  # the table of the next step
        schedule.synchronize(timeout=LIMIT)
        assert used.numpy(forward).tolist() == [1] * N
    finally:
        rest(schedule, forward)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
