"""Numbers of accepted tokens are read through a NumPy view while they are still being copied.

Source: vllm-project/vllm#36013.
Seen: the numbers go to pinned memory without blocking, and the next step reads them by a NumPy view. Asynchronous
scheduling avoids every wait in between, so the host could read those of the step before.
Must be found: the copy to the host beside the host's read through the view.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    accepted, copied = torch.full((1024,), 3, device="cuda"), torch.cuda.Event()
    on_host = torch.zeros(1024, dtype=torch.int64, pin_memory=True)
    view = on_host.numpy()
    torch.cuda.synchronize()
    on_host.copy_(accepted, non_blocking=True)
    copied.record()
    if ordered:
        copied.synchronize()
    total = int(view.sum())
    torch.cuda.synchronize()
    assert total == 3072


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
