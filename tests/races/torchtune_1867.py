"""A view keeps an activation's memory in use longer than the wait that protects it.

Source: meta-pytorch/torchtune#1867.
Seen: activation offloading let its stream wait for the first use of a reloaded tensor, and then dropped it. Where a
view of it was read later, the memory went to the next reload too early: gradients were NaN.
Must be found: the use of the view beside the next copy, which gets the same memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    reload, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    first, second = (torch.full((4096,), value).pin_memory() for value in (1.0, 2.0))
    with torch.cuda.stream(reload):
        activation = first.to("cuda", non_blocking=True)
    compute.wait_stream(reload)
    view = activation.view(64, 64)
    once = activation * 2
    used = compute.record_event()
    del activation
    later = view * 3
    if ordered:
        view.record_stream(compute)
    del view
    reload.wait_event(used)
    with torch.cuda.stream(reload):
        following = second.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert (once.sum().item(), later.sum().item(), following[0].item()) == (8192, 12288, 2)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
