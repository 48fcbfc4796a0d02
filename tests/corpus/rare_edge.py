"""One edge is missing, between work at the start and the last batch.

Seen: a result that is wrong so rarely that nobody could repeat it: parameters
were set up on another stream than the one that used them much later
(NVIDIA-BioNeMo/nvMolKit #55; once in ten thousand runs: OpenPPL/ppl.cv #135).
Missing: a wait for the stream that made the table.
Passes by luck: the table would have to be later than ten batches for each of
which the host waits.
"""

from __future__ import annotations

from halstream.cupy import cuda

from ._host import LIMIT, Host, N, rest

BATCHES = 10


def _run(ordered: bool) -> None:
    host = Host()
    setup, work = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    table, batch, out = host.numbers(0), host.numbers(0), host.numbers(0)
    try:
        host.parse()
        table.fill(6, setup)
        ready = setup.record()
        for number in range(1, BATCHES + 1):
            host.step()
            batch.fill(number, work)
            out.copy_from(batch, work)
            work.synchronize(timeout=LIMIT)
        if ordered:
            work.wait_event(ready)
        out.copy_from(table, work)  # only the remainder needs the table
        assert out.numpy(work).tolist() == [6] * N
    finally:
        rest(setup, work)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
