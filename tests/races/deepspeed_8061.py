"""A bucket is filled by several streams, and the reduction waits for one of them.

Source: deepspeedai/DeepSpeed#8061.
Seen: in a compiled backward pass the hooks of the parameters run on different streams, and each copies its gradient
into the common bucket. The reduction stream waited for the stream that was current when the bucket was full.
Must be found: the copy of the other stream beside the reduction.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    one, two, reduction = (torch.cuda.Stream() for _ in range(3))
    bucket = torch.zeros(512, device="cuda")
    gradients = torch.ones(2, 256, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        bucket[:256].copy_(gradients[0])
    with torch.cuda.stream(two):
        bucket[256:].copy_(gradients[1])
        reduction.wait_stream(torch.cuda.current_stream())
    if ordered:
        reduction.wait_stream(one)
    with torch.cuda.stream(reduction):
        bucket.mul_(0.5)
    torch.cuda.synchronize()
    assert bucket.sum().item() == 256


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
