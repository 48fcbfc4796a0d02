"""The optimizer reads gradients before their reduction has ended.

Source: pytorch/pytorch#144535.
Seen: pipelined stages called the hooks of sharded training by hand and left out the last one, which makes the
main stream wait for the reductions. Whatever read a gradient on the main stream raced with them.
Must be found: the reduction beside the update on the default stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    reduce_scatter, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    weight = torch.zeros(256, device="cuda")
    gradient = torch.full((256,), 4.0, device="cuda")
    reduce_scatter.wait_stream(compute)
    with torch.cuda.stream(reduce_scatter):
        gradient.mul_(0.5)
    if ordered:
        compute.wait_stream(reduce_scatter)
    weight.sub_(gradient)
    torch.cuda.synchronize()
    assert weight.sum().item() == -512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
