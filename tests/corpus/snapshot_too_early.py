"""Work is enqueued after the wait that was to cover it.

Seen: gradients that differ from run to run when activations are offloaded: the
transfer stream waited for the computing one, and only then the tensor was made
contiguous there (huggingface/trl #7195).
Missing: the wait in its place, after the clone.
Passes by luck: the clone is short and was enqueued before the copy.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, read, rest


def _run(ordered: bool) -> None:
    host = Host()
    compute, transfer = cuda.Stream(), cuda.Stream()
    labels, contiguous, offloaded = host.numbers(0), host.numbers(0), pinned_numbers(0)
    try:
        labels.fill(6, compute)
        compute.synchronize(timeout=LIMIT)
        if not ordered:
            transfer.wait_stream(compute)
        host.parse()
        contiguous.copy_from(labels, compute)
        host.step()
        if ordered:
            transfer.wait_stream(compute)
        contiguous.copy_to(offloaded, transfer)
        transfer.synchronize(timeout=LIMIT)
        assert read(offloaded) == [6] * N
    finally:
        rest(compute, transfer)


def broken() -> None:
    """Run with the wait before the clone."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait after the clone."""
    _run(ordered=True)
