"""Results are copied to the CPU without blocking and used at once.

Source: pytorch/pytorch#86264.
Seen: `tensor.to("cpu", non_blocking=True)` returns before the copy is done, and sums of what it returned differed
from run to run. With a sleep in between they were right.
Must be found: the copy to the host beside the host's read.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    x = torch.full((256,), 2.0, device="cuda")
    on_host = (x * 2).to("cpu", non_blocking=True)
    if ordered:
        torch.cuda.synchronize()
    assert on_host.sum().item() == 1024


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
