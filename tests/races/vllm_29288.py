"""A buffer of the draft model is filled a second time within a step.

Source: vllm-project/vllm#29288.
Seen: speculative decoding prepares its inputs in a CPU buffer of its own, which the scheduler's wait does not cover.
It was filled for the next draft while the copy of the last one was still to come.
Must be found: the copy to the device beside the host's next write.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    drafts = torch.cuda.Stream()
    backup, copied = torch.empty(64, dtype=torch.int64, pin_memory=True), torch.cuda.Event()
    tokens = torch.zeros(2, 64, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    for draft in range(2):
        if ordered:
            copied.synchronize()
        backup.copy_(torch.full((64,), draft + 1))
        with torch.cuda.stream(drafts):
            tokens[draft].copy_(backup, non_blocking=True)
            copied.record()
    torch.cuda.synchronize()
    assert tokens.sum(dim=1).tolist() == [64, 128]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
