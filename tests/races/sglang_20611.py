"""The KV cache is backed up on a stream that does not wait for the forward pass.

Source: sgl-project/sglang#20611.
Seen: with hierarchical caching and much eviction, copies to the host on the write stream ran beside the attention
on the forward stream that writes the same blocks. Illegal memory accesses were reported for months.
Must be found: the forward pass's write beside the copy to the host.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    forward, write = torch.cuda.Stream(), torch.cuda.Stream()
    cache = torch.zeros(4, 64, device="cuda")
    backup = torch.zeros(4, 64, pin_memory=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(forward):
        cache.add_(2)
    if ordered:
        write.wait_stream(forward)
    with torch.cuda.stream(write):
        backup.copy_(cache, non_blocking=True)
    torch.cuda.synchronize()
    assert backup.sum().item() == 512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
