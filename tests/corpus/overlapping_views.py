"""Two views that overlap by some rows, on two streams.

Seen: wrong answers under many concurrent requests: a cache server rounded the
start of what it writes down to a chunk, and so wrote blocks of a shared prefix
on its own stream while other requests read them (LMCache/LMCache #2671, #2706).
Missing: a wait for the readers, or the exact start.
Passes by luck: the reader was enqueued first, on an idle stream.
"""

from __future__ import annotations

import halstream as hs
import numpy as np
from halstream.torch import cuda

from ._host import LIMIT, Host, rest

ROWS, WIDTH, CHUNK = 12, 16, 4


def _run(ordered: bool) -> None:
    host = Host()
    compute, retrieve = cuda.Stream(), cuda.Stream()
    cache = hs.empty((ROWS, WIDTH), np.int32)
    prefix = hs.empty((6, WIDTH), np.int32)
    try:
        cache.fill(1, compute)
        compute.synchronize(timeout=LIMIT)
        host.parse()
        prefix.copy_from(cache[0:6], compute)  # attention over the shared prefix
        host.step()
        start = 6 // CHUNK * CHUNK
        if ordered:
            retrieve.wait_stream(compute)
        cache[start:ROWS].fill(2, retrieve)
        retrieve.synchronize(timeout=LIMIT)
        assert (prefix.numpy(compute) == 1).all()
    finally:
        rest(compute, retrieve)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
