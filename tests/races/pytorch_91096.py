"""A shard is freed by `resize_(0)` while the stream of the all-gather reads it.

Source: pytorch/pytorch#91096.
Seen: sharded training makes the low-precision shard on one stream, gathers it on a second, and frees its storage
from the host. A refactoring had lost the `record_stream` for the second one.
Must be found: the gather beside the next shard in the same memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    pre_unshard, unshard = torch.cuda.Stream(), torch.cuda.Stream()
    gathered = torch.zeros(4096, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(pre_unshard):
        shard = torch.ones(4096, device="cuda")
    unshard.wait_stream(pre_unshard)
    with torch.cuda.stream(unshard):
        gathered.copy_(shard)
    if ordered:
        shard.record_stream(unshard)
    shard.untyped_storage().resize_(0)
    with torch.cuda.stream(pre_unshard):
        following = torch.full((4096,), 3.0, device="cuda")
    torch.cuda.synchronize()
    assert (gathered.sum().item(), following[0].item()) == (4096, 3)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
