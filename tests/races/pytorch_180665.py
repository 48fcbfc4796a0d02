"""A reduced gradient is freed while another stream still copies it to the host.

Source: pytorch/pytorch#180665.
Seen: in sharded training with CPU offload the gradient belongs to the stream of the reduce-scatter and is copied on
that of the all-reduce. The next reduction got its memory before the copy was done: gradients were silently wrong.
Must be found: the copy to the host beside the next reduction in the same memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    reduce_scatter, all_reduce = torch.cuda.Stream(), torch.cuda.Stream()
    host = torch.zeros(4096, pin_memory=True)
    with torch.cuda.stream(reduce_scatter):
        gradient = torch.ones(4096, device="cuda")
    all_reduce.wait_stream(reduce_scatter)
    with torch.cuda.stream(all_reduce):
        host.copy_(gradient, non_blocking=True)
        copied = all_reduce.record_event()
    if ordered:
        reduce_scatter.wait_event(copied)
    del gradient
    with torch.cuda.stream(reduce_scatter):
        following = torch.full((4096,), 5.0, device="cuda")
    torch.cuda.synchronize()
    assert (host.sum().item(), following[0].item()) == (4096, 5)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
