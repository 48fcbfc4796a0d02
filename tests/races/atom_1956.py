"""A staging buffer is allocated on one stream and first written on another.

Source: ROCm/ATOM#1956.
Seen: the buffer was made lazily on the default stream, in memory that queued work of that stream still read, and
the pack stream wrote to it at once. `record_stream` does not help: it protects the memory's next owner only.
Must be found: the read of the memory's last owner beside the pack stream's write.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    pack = torch.cuda.Stream()
    total = torch.zeros(4096, device="cuda")
    page = torch.full((4096,), 5.0, device="cuda")
    last = torch.ones(4096, device="cuda")
    torch.cuda.synchronize()
    total.add_(last)
    del last  # its memory may be given out again on this stream, behind the sum
    if ordered:
        with torch.cuda.stream(pack):
            staging = torch.empty(4096, device="cuda")
    else:
        staging = torch.empty(4096, device="cuda")
    with torch.cuda.stream(pack):
        staging.copy_(page)
    torch.cuda.synchronize()
    assert (total.sum().item(), staging[0].item()) == (4096, 5)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
