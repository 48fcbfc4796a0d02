"""Pages of the KV cache are restored while a round in flight still writes to them.

Source: sgl-project/sglang#36738.
Seen: overlapping scheduling frees the pages of a request while its last round still runs. The copy that restores
another request's prefix into them, on the transfer stream, was ordered behind nothing of the forward stream.
Must be found: the forward pass's write beside the copy to the device.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    forward, transfer = torch.cuda.Stream(), torch.cuda.Stream()
    pages = torch.zeros(4, 64, device="cuda")
    prefix = torch.full((64,), 6.0).pin_memory()
    torch.cuda.synchronize()
    with torch.cuda.stream(forward):
        pages[1].fill_(1.0)
    if ordered:
        transfer.wait_stream(forward)
    with torch.cuda.stream(transfer):
        pages[1].copy_(prefix, non_blocking=True)
    torch.cuda.synchronize()
    assert pages[1].sum().item() == 384


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
