"""A tuner measures a kernel on a new stream with tensors that the program is still writing.

Source: flagos-ai/FlagGems#5901.
Seen: at a kernel's first call the tuner enters a stream of its own and calls it with the live arguments. A new
stream inherits no order, so the first call could read what the program's stream had not written yet.
Must be found: the program's write beside the measured call on the new stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    state = torch.zeros(256, device="cuda")
    out = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    state.add_(3)
    with torch.cuda.stream(torch.cuda.Stream()):
        if ordered:
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        torch.mul(state, 2, out=out)
    torch.cuda.synchronize()
    assert out.sum().item() == 1536


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
