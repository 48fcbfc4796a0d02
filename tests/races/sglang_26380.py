"""The scheduler's stream overwrites a mapping that the last forward pass still reads.

Source: sgl-project/sglang#26380.
Seen: each forward pass waited for the scheduler, but the scheduler not for the forward pass. Its next writes to
shared buffers came too early; accuracy dropped now and then. One wait at the top of the loop repairs it.
Must be found: the forward pass's read beside the scheduler's next write.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    forward, schedule = torch.cuda.Stream(), torch.cuda.Stream()
    mapping = torch.zeros(256, device="cuda")
    outputs = torch.zeros(2, 256, device="cuda")
    torch.cuda.synchronize()
    for step in range(2):
        if ordered:
            schedule.wait_stream(forward)
        with torch.cuda.stream(schedule):
            mapping.fill_(step + 1.0)
        forward.wait_stream(schedule)
        with torch.cuda.stream(forward):
            outputs[step].copy_(mapping)
    torch.cuda.synchronize()
    assert outputs.sum(dim=1).tolist() == [256, 512]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
