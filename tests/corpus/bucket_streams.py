"""A bucket of gradients is filled from two streams, and the reduction waits for one.

Seen: NaN from the first step on with compiled backward passes: hooks copied
gradients into one buffer on several streams, and the reduction waited only for
the one that was current when it began (deepspeedai/DeepSpeed #8061).
Missing: a wait for the other stream.
Passes by luck: both copies were enqueued first, on idle streams.
"""

from __future__ import annotations

import halstream as hs
import numpy as np
from halstream.torch import cuda

from ._host import LIMIT, Host, N, rest


def _run(ordered: bool) -> None:
    host = Host()
    first, second, reduction = cuda.Stream(), cuda.Stream(), cuda.Stream()
    bucket, total = hs.empty((2, N), np.int32), hs.empty((2, N), np.int32)
    gradients = host.numbers(1), host.numbers(2)
    try:
        bucket.fill(0, reduction)
        reduction.synchronize(timeout=LIMIT)
        host.parse()
        bucket[1].copy_from(gradients[1], second)
        bucket[0].copy_from(gradients[0], first)
        host.step()
        reduction.wait_stream(first)  # the current one
        if ordered:
            reduction.wait_stream(second)
        total.copy_from(bucket, reduction)
        assert total.numpy(reduction).tolist() == [[1] * N, [2] * N]
    finally:
        rest(first, second, reduction)


def broken() -> None:
    """Run with a wait for the current stream only."""
    _run(ordered=False)


def fixed() -> None:
    """Run with a wait for both streams."""
    _run(ordered=True)
