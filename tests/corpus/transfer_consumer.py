"""The default stream uses weights that a transfer stream still copies.

Seen: wrong numbers in nearly every run on one machine and none on another, from
group offloading: the copy ran on a stream of its own and the matrix product on
the default stream (ROCm/pytorch #3194, huggingface/diffusers #13502).
Missing: the default stream does not wait for the transfer.
Passes by luck: the copy was enqueued first, on an idle stream, and it takes a
thread and Python's lock to run the product.
"""

from __future__ import annotations

import numpy as np
from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, rest


def _run(ordered: bool) -> None:
    host = Host()
    transfer, default = cuda.Stream(), cuda.default_stream()
    source, weights, product = pinned_numbers(3), host.numbers(0), host.numbers(0)
    try:
        host.parse()
        weights.copy_from(source, transfer)
        host.step()
        if ordered:
            default.wait_stream(transfer)
        default.call(np.multiply, weights, 2, product, reads=[weights], writes=[product])
        default.synchronize(timeout=LIMIT)
        assert product.numpy(default).tolist() == [6] * N
    finally:
        rest(transfer, default)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
