"""A hook of a parameter runs on the stream on which the model was wrapped.

Source: NVIDIA/Megatron-LM#3670.
Seen: data parallelism was set up inside a block of a side stream, and so the hook that scales gradients ran on
that stream. The communication stream waited for the computing stream, and reduced gradients that were not scaled.
Must be found: the scaling on the side stream beside the reduction on the communication stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    setup, comm, compute = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()
    weight = torch.ones(256, device="cuda", requires_grad=True)
    reduced = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()

    def scale_and_reduce(gradient: torch.Tensor) -> None:
        gradient.mul_(0.5)
        comm.wait_stream(torch.cuda.current_stream() if ordered else compute)
        with torch.cuda.stream(comm):
            reduced.copy_(gradient)
        gradient.record_stream(comm)

    with torch.cuda.stream(setup):
        view = weight.expand_as(weight)
    view.register_hook(scale_and_reduce)
    compute.wait_stream(setup)
    with torch.cuda.stream(setup):
        loss = (view * 4).sum()
    loss.backward()
    torch.cuda.synchronize()
    assert reduced.sum().item() == 512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
