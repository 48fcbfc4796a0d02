"""An array dies on the host while another stream still copies it.

Seen: a memory pool with an arena per stream gives a block back to its arena as
soon as the array is gone; what other streams do with it nobody can tell the
pool (cupy/cupy #8068).
Missing: the arena's stream does not wait for the stream that reads.
Passes by luck: the copy was enqueued first, on an idle stream.
"""

from __future__ import annotations

import halstream.cupy as cp
from halstream.cupy import cuda

from ._host import LIMIT, Host, N, rest


def _run(ordered: bool) -> None:
    host = Host()
    main, side = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    try:
        with main:
            weights = cp.full(N, 3, "i4")
            main.synchronize(timeout=LIMIT)
        host.parse()
        with side:
            kept = weights.copy()
        host.step()
        if ordered:
            main.wait_event(side.record())
        del weights
        with main:
            following = cp.full(N, 4, "i4")  # in the same place
            main.synchronize(timeout=LIMIT)
        with side:
            assert kept.tolist() == [3] * N
        assert following.size == N
    finally:
        rest(main, side)
        del kept, following
        cp.get_default_memory_pool().free_all_blocks()


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
