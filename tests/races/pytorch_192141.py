"""A side stream multiplies inputs that the default stream is still filling.

Source: pytorch/pytorch#192141.
Seen: a test of torch entered a stream and multiplied tensors that had just been made on the default stream. Where
that was busy the product was garbage, in 49 of 50 runs.
Must be found: the inputs' filling beside the product on the side stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(16, 16, device="cuda")
    weight = torch.full((16, 16), 2.0, device="cuda")
    if ordered:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x @ weight
    torch.cuda.synchronize()
    assert y.sum().item() == 8192


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
