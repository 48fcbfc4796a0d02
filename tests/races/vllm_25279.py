"""Reused CPU tensors are changed before the wait for the copies of the last step.

Source: vllm-project/vllm#25279.
Seen: asynchronous scheduling waited for the event of the last step's copies, but the states of the requests were
updated before that wait, by NumPy views of the pinned buffers. Sampling used parameters of another step.
Must be found: the copy to the device beside the host's write through the view.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    temperature, copied = torch.zeros(256, pin_memory=True), torch.cuda.Event()
    states = temperature.numpy()
    on_device = [torch.zeros(256, device="cuda") for _ in range(2)]
    torch.cuda.synchronize()
    for step in range(2):
        if ordered:
            copied.synchronize()
        states[:] = step + 1.0
        if not ordered:
            copied.synchronize()  # too late
        on_device[step].copy_(temperature, non_blocking=True)
        copied.record()
    torch.cuda.synchronize()
    assert [one.sum().item() for one in on_device] == [256, 512]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
