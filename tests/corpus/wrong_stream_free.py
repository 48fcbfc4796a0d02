"""Stream-ordered memory is freed on another stream than the one that uses it.

Seen: memory that two kernels had at once: a free in stream order says nothing
of the streams that were not ordered before it (the rule in the README of
rapidsai/rmm, broken inside its pool in #2489, fixed by #2490).
Missing: the right stream in the call of the free.
Passes by luck: the copy that reads the block was enqueued first, on an idle
stream.
"""

from __future__ import annotations

from halstream.cupy import cuda
from halstream.cupy.cuda import runtime

from ._host import LIMIT, Host, N, pinned_numbers, read, rest

SIZE = 4 * N


def _run(ordered: bool) -> None:
    host = Host()
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    back = pinned_numbers(0)
    block = runtime.mallocAsync(SIZE, first.ptr)
    runtime.memsetAsync(block, 1, SIZE, first.ptr)
    first.synchronize(timeout=LIMIT)
    following = 0
    try:
        host.parse()
        runtime.memcpyAsync(back.ctypes.data, block, SIZE, runtime.memcpyDeviceToHost, first.ptr)
        host.step()
        runtime.freeAsync(block, first.ptr if ordered else second.ptr)
        following = runtime.mallocAsync(SIZE, second.ptr)
        runtime.memsetAsync(following, 2, SIZE, second.ptr)
        second.synchronize(timeout=LIMIT)
        first.synchronize(timeout=LIMIT)
        assert read(back) == [0x01010101] * N
    finally:
        rest(first, second)
        runtime.freeAsync(following, second.ptr)
        rest(second)


def broken() -> None:
    """Run with the free on the other stream."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the free on the stream that reads."""
    _run(ordered=True)
