"""A bucket of gradients is filled again while the reduction still reads it.

Source: deepspeedai/DeepSpeed#5606.
Seen: the reduction stream waited for the default stream, but not the other way round. Where the communication took
longer than the computation, the next gradients overwrote the buffer that was being reduced.
Must be found: the reduction beside the next copy into the buffer.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    reduction, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    buffer = torch.zeros(256, device="cuda")
    total = torch.zeros(256, device="cuda")
    for gradient in (1.0, 2.0):
        if ordered:
            compute.wait_stream(reduction)
        buffer.fill_(gradient)
        reduction.wait_stream(compute)
        with torch.cuda.stream(reduction):
            total.add_(buffer)
    torch.cuda.synchronize()
    assert total.sum().item() == 768


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
