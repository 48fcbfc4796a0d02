"""A blocking copy belongs to the legacy default stream, which a non-blocking stream does not know.

Seen: data races between ``cudaMemcpy`` and kernels on streams made with
``cudaStreamNonBlocking``, about one wrong result in ten thousand under load
(alpaka-group/alpaka #850, OpenPPL/ppl.cv #135, ROCm/MIOpen #3299).
Missing: a wait for the stream before the copy, or a stream that is ordered
with the default one.
Passes by luck: the host waits for the copy, and the work that reads the block
was ready before it.
"""

from __future__ import annotations

from halstream.cupy import cuda
from halstream.cupy.cuda import runtime

from ._host import LIMIT, Host, N, pinned_numbers, rest


def _run(ordered: bool) -> None:
    host = Host()
    stream = cuda.Stream(non_blocking=True)
    image, seen, following = host.numbers(3), host.numbers(0), pinned_numbers(4)
    try:
        host.parse()
        seen.copy_from(image, stream)  # the kernel that works on this image
        host.step()
        if ordered:
            stream.synchronize(timeout=LIMIT)
        runtime.memcpy(image.ptr, following.ctypes.data, image.nbytes, runtime.memcpyHostToDevice)
        assert seen.numpy(stream).tolist() == [3] * N
    finally:
        rest(stream, cuda.Stream.null)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
