"""A number is read from pinned memory in the same line that starts its copy.

Source: deepspeedai/DeepSpeed#501, found in review.
Seen: to avoid a wait, a check for overflow copied a sum to pinned memory without blocking, and made a float of it at
once. It would have got what was there before.
Must be found: the copy to the host beside the host's read.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    gradient = torch.full((256,), 0.5, device="cuda")
    on_host = torch.zeros(1, pin_memory=True)
    total = gradient.sum().reshape(1)
    on_host.copy_(total, non_blocking=True)
    if ordered:
        torch.cuda.current_stream().synchronize()
    found = float(on_host)
    torch.cuda.synchronize()
    assert found == 128


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
