"""A model is wrapped on a side stream, and read before that is done.

Source: NVIDIA-NeMo/Megatron-Bridge#1706.
Seen: data parallelism was set up on a stream of its own, which was never joined with the default stream. Parameters
were now and then empty when they were first read.
Must be found: the initialization on the side stream beside the first read.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    setup = torch.cuda.Stream()
    buffer = torch.zeros(256, device="cuda")
    setup.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(setup):
        buffer.fill_(1.0)
    if ordered:
        torch.cuda.current_stream().wait_stream(setup)
    norm = buffer.sum()
    torch.cuda.synchronize()
    assert norm.item() == 256


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
