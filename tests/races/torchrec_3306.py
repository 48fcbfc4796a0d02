"""A pipeline makes a new stream where it means the one that computes.

Source: meta-pytorch/torchrec#3306.
Seen: the pipeline's "default stream" was a stream of its own, and it was this one that waited for the prefetch. The
forward pass, on the stream that is current, read embeddings that were still being fetched.
Must be found: the prefetch beside the forward pass on the default stream.
"""

from __future__ import annotations

import torch


class Pipeline:
    def __init__(self, ordered: bool) -> None:
        self.prefetch = torch.cuda.Stream()
        self.default = torch.cuda.current_stream() if ordered else torch.cuda.Stream()


def _run(ordered: bool) -> None:
    pipeline = Pipeline(ordered)
    host = torch.full((256,), 3.0).pin_memory()
    rows = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(pipeline.prefetch):
        rows.copy_(host, non_blocking=True)
    pipeline.default.wait_stream(pipeline.prefetch)
    output = rows * 2
    torch.cuda.synchronize()
    assert output.sum().item() == 1536


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
