"""In deterministic mode a new tensor is filled, behind the wait that orders its user.

Source: deepseek-ai/DeepEP#589.
Seen: `torch.use_deterministic_algorithms(True)` makes `torch.empty` write NaN to the tensor, on the current stream.
The communication stream had waited before the tensor was made, so that the fill could come after the result.
Must be found: the fill on the default stream beside the write on the communication stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    comm, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    tokens = torch.ones(256, device="cuda")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        comm.wait_stream(compute)
        combined = torch.empty(256, device="cuda")
        if ordered:
            comm.wait_stream(compute)
        with torch.cuda.stream(comm):
            torch.mul(tokens, 2, out=combined)
    finally:
        torch.use_deterministic_algorithms(before)
    torch.cuda.synchronize()
    assert combined.sum().item() == 512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
