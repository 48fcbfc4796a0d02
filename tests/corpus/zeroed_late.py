"""A workspace is zeroed on the default stream, and used on another one.

Seen: results wiped out now and then: the workspace of a matrix product was
cleared on the default stream whatever stream the kernel was given
(NVIDIA/cutlass #214); the same with profile scratch under many parallel tests
(triton-lang/triton #10186).
Missing: the stream in the call that clears.
Passes by luck: the default stream is idle, so it clears at once.
"""

from __future__ import annotations

from halstream.cupy import cuda
from halstream.cupy.cuda import runtime

from ._host import Host, N, rest


def _run(ordered: bool) -> None:
    host = Host()
    stream = cuda.Stream(non_blocking=True)
    workspace, product = host.numbers(7), host.numbers(5)
    try:
        host.parse()
        clearing = stream if ordered else cuda.Stream.null
        runtime.memsetAsync(workspace.ptr, 0, workspace.nbytes, clearing.ptr)
        host.step()
        workspace.copy_from(product, stream)  # the kernel's result
        assert workspace.numpy(stream).tolist() == [5] * N
        rest(cuda.Stream.null)
        assert workspace.numpy(stream).tolist() == [5] * N
    finally:
        rest(stream, cuda.Stream.null)


def broken() -> None:
    """Run with the default stream."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the kernel's stream."""
    _run(ordered=True)
