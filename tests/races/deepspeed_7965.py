"""The buffer of a reduction is dropped while the reduction stream reads it.

Source: deepspeedai/DeepSpeed#7965.
Seen: with overlapping communication the flattened gradients were used on the reduction stream without
`record_stream`. The allocator gave their memory out again before the queued work was done: the loss became NaN.
Must be found: the copy on the reduction stream beside the next tensor in the same memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    reduction = torch.cuda.Stream()
    result = torch.zeros(4096, device="cuda")
    flat = torch.ones(4096, device="cuda")
    reduction.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(reduction):
        result.copy_(flat)
    if ordered:
        flat.record_stream(reduction)
    del flat
    activation = torch.full((4096,), 7.0, device="cuda")
    torch.cuda.synchronize()
    assert (result.sum().item(), activation[0].item()) == (4096, 7)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
