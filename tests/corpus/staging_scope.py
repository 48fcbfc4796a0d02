"""A function gives its pinned staging buffer back when it returns.

Seen: device tables full of wrong pointers after staging memory became pinned:
the buffer was a local one, the copy from it was not done at the end of the
function, and the pool gave it to the next caller (NVIDIA/cudf #22284).
Missing: a wait for the copy before the buffer goes back.
Passes by luck: the next caller has waited for work of its own, and the copy was
ready before that.
"""

from __future__ import annotations

import halstream as hs
import numpy as np
from halstream.cupy import cuda

from ._host import LIMIT, Host, N, pinned_numbers, rest


def _upload(pool: list[np.ndarray], target: hs.Array, value: int, stream: cuda.Stream, ordered: bool) -> None:
    """Describe a table to the device."""
    staging = pool.pop()
    hs.host_access(staging, "w")
    staging[:] = value
    target.copy_from(staging, stream)
    if ordered:
        stream.synchronize(timeout=LIMIT)
    pool.append(staging)


def _run(ordered: bool) -> None:
    host = Host()
    pool = [pinned_numbers(0)]
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    table, columns, other = host.numbers(0), host.numbers(0), host.numbers(0)
    try:
        host.parse()
        _upload(pool, table, 1, first, ordered)
        columns.fill(9, second)
        second.synchronize(timeout=LIMIT)
        host.step()
        _upload(pool, other, 2, second, ordered)
        assert table.numpy(first).tolist() == [1] * N
        assert other.numpy(second).tolist() == [2] * N
    finally:
        rest(first, second)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
