"""A hook updates the parameters with a gradient that is still on its way to the host.

Source: pytorch/pytorch#180666.
Seen: with CPU offload the gradient is copied to pinned memory without blocking, and the hook for an optimizer in
the backward pass ran before anything had waited for the copy. It used what was in the memory before.
Must be found: the copy to the host beside the host's read.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    reduce = torch.cuda.Stream()
    parameter = torch.zeros(256)
    gradient = torch.full((256,), 2.0, device="cuda")

    def step(of_host: torch.Tensor) -> None:
        parameter.add_(of_host, alpha=-0.5)

    reduce.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(reduce):
        offloaded = gradient.to("cpu", non_blocking=True)
        copied = reduce.record_event()
    if ordered:
        copied.synchronize()
    step(offloaded)
    torch.cuda.synchronize()
    assert parameter.sum().item() == -256


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
