"""The host reads a buffer before the copy back is done.

Seen: patches of zeros in reconstructed images, now and then: all fields of a
result were brought to the host without blocking and read at once
(PTB-MR/mrpro #984; the same question in pytorch/pytorch #86264 and #140296).
Missing: a wait for the stream that copies the image.
Passes by luck: the host waits for the smaller field, whose copy was enqueued
later.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, read, rest


def _run(ordered: bool) -> None:
    host = Host()
    images, headers = cuda.Stream(), cuda.Stream()
    image, header = host.numbers(3), host.numbers(4)
    image_back, header_back = pinned_numbers(0), pinned_numbers(0)
    try:
        host.parse()
        image.copy_to(image_back, images)
        header.copy_to(header_back, headers)
        headers.synchronize(timeout=LIMIT)
        assert read(header_back) == [4] * N
        host.step()
        if ordered:
            images.synchronize(timeout=LIMIT)
        assert read(image_back) == [3] * N
    finally:
        rest(images, headers)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
