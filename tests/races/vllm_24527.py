"""The inputs of the next step are prepared in pinned memory that is still being copied.

Source: vllm-project/vllm#24527.
Seen: with asynchronous scheduling the host prepares a step while the device runs the last one, in the same CPU
tensors. Nothing made it wait for the copies out of them; an event that is synchronized first does.
Must be found: the copy to the device beside the host's next write.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    positions, prepared = torch.zeros(256, pin_memory=True), torch.cuda.Event()
    on_device = [torch.zeros(256, device="cuda") for _ in range(2)]
    torch.cuda.synchronize()
    for step in range(2):
        if ordered:
            prepared.synchronize()
        positions.fill_(step + 1.0)
        on_device[step].copy_(positions, non_blocking=True)
        prepared.record()
    torch.cuda.synchronize()
    assert [one.sum().item() for one in on_device] == [256, 512]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
