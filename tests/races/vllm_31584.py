"""The output of a pooling model is taken from the host before its copy has arrived.

Source: vllm-project/vllm#31584.
Seen: pooling models returned their output without a wait for the copy to the CPU once scheduling was asynchronous,
and embeddings were wrong. The copy got a stream and an event, for which the consumer waits.
Must be found: the copy to the host beside the host's read.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    copies = torch.cuda.Stream()
    pooled = torch.full((4, 64), 0.5, device="cuda")
    copies.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(copies):
        embeddings = pooled.to("cpu", non_blocking=True)
        arrived = copies.record_event()
    pooled.record_stream(copies)
    if ordered:
        arrived.synchronize()
    found = [embedding.sum().item() for embedding in embeddings]
    torch.cuda.synchronize()
    assert found == [32] * 4


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
