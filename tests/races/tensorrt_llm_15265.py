"""A tensor goes from one stream to another by an event, and the allocator is not told.

Source: NVIDIA/TensorRT-LLM#15265.
Seen: the prologue of an attention layer hands tensors across streams. Events order the work, but not the
allocator: the memory went to the next tensor of the first stream while the second still read it.
Must be found: the second stream's read beside the next tensor in the same memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    aux, indexer = torch.cuda.Stream(), torch.cuda.Stream()
    scores = torch.zeros(4096, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(aux):
        keys = torch.ones(4096, device="cuda")
        ready = aux.record_event()
    indexer.wait_event(ready)
    with torch.cuda.stream(indexer):
        scores.add_(keys)
    if ordered:
        keys.record_stream(indexer)
    del keys
    with torch.cuda.stream(aux):
        following = torch.full((4096,), 4.0, device="cuda")
    torch.cuda.synchronize()
    assert (scores.sum().item(), following[0].item()) == (4096, 4)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
