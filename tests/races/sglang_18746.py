"""A slot of a table is given to the next request while the forward pass still reads it.

Source: sgl-project/sglang#18746.
Seen: the scheduler frees the slot of a finished request and writes that of a new one on the default stream. The
forward pass of the step before, on its own stream, still reads the same row.
Must be found: the forward pass's read beside the scheduler's write.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    forward, schedule = torch.cuda.Stream(), torch.cuda.current_stream()
    request_to_token = torch.zeros(4, 64, device="cuda")
    request_to_token[1].fill_(1.0)
    forward.wait_stream(schedule)
    with torch.cuda.stream(forward):
        tokens = request_to_token[1] * 2
    if ordered:
        schedule.wait_stream(forward)
    request_to_token[1].fill_(8.0)  # the next request
    torch.cuda.synchronize()
    assert tokens.sum().item() == 128


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
