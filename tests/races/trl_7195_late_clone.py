"""A clone is enqueued behind the wait that should cover it.

Source: huggingface/trl#7195, the second of its two races.
Seen: saved tensors that are a part of another one were cloned before they went to the host, but the transfer
stream had already waited for the computing stream by then. It copied clones that were not written yet.
Must be found: the clone beside the copy to the host.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    transfer, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    labels = torch.full((4, 65), 2.0, device="cuda")
    host = torch.zeros(4, 64, pin_memory=True)
    torch.cuda.synchronize()
    shifted = labels[:, 1:]
    if ordered:
        shifted = shifted.clone()
    transfer.wait_stream(compute)
    if not ordered:
        shifted = shifted.clone()
    with torch.cuda.stream(transfer):
        host.copy_(shifted, non_blocking=True)
    shifted.record_stream(transfer)
    torch.cuda.synchronize()
    assert host.sum().item() == 512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
