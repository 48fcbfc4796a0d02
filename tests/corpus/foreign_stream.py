"""Another library writes a tensor on a stream of its own.

Seen: a data loader's plug-in for Paddle copied each batch on the loader's
internal stream into a tensor that kernels on Paddle's stream still read
(NVIDIA/DALI #3487).
Missing: the framework's stream as the argument of the copy.
Passes by luck: the loader waits for its own copy, and the kernel that reads
the batch before was ready first.
"""

from __future__ import annotations

import halstream as hs
import numpy as np
from halstream.paddle import device

from ._host import LIMIT, Host, N, pinned_numbers, rest


class _Loader:
    """Stands for the other library."""

    def __init__(self) -> None:
        self.stream = hs.Stream(non_blocking=True)

    def copy_to(self, tensor: hs.Array, batch: np.ndarray, stream: hs.Stream | None = None) -> None:
        """Fill a tensor with a batch and wait for that."""
        stream = self.stream if stream is None else stream
        tensor.copy_from(batch, stream)
        hs.Stream.synchronize(stream, timeout=LIMIT)


def _run(ordered: bool) -> None:
    host = Host()
    loader, paddle = _Loader(), device.Stream()
    tensor, activations = host.numbers(1), host.numbers(0)
    following = pinned_numbers(2)
    try:
        host.parse()
        activations.copy_from(tensor, paddle)  # the kernel of this batch
        host.step()
        loader.copy_to(tensor, following, stream=paddle if ordered else None)
        assert activations.numpy(paddle).tolist() == [1] * N
    finally:
        rest(loader.stream, paddle)


def broken() -> None:
    """Run with the loader's own stream."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the framework's stream."""
    _run(ordered=True)
