"""Activation offloading waits for the stream that was current when it was built.

Source: huggingface/trl#7195.
Seen: the offloading object asked for the current stream once, in its constructor. Where recomputation or a
custom function ran on another stream, the copy to the host waited for the wrong one and took stale activations.
Must be found: the product on the recomputing stream beside the copy on the transfer stream.
"""

from __future__ import annotations

import torch


class Offload:
    def __init__(self) -> None:
        self.transfer = torch.cuda.Stream()
        self.compute = torch.cuda.current_stream()

    def pack(self, activation: torch.Tensor, ordered: bool) -> torch.Tensor:
        host = torch.empty(activation.shape, pin_memory=True)
        self.transfer.wait_stream(torch.cuda.current_stream() if ordered else self.compute)
        with torch.cuda.stream(self.transfer):
            host.copy_(activation, non_blocking=True)
        activation.record_stream(self.transfer)
        return host


def _run(ordered: bool) -> None:
    offload, recompute = Offload(), torch.cuda.Stream()
    weight = torch.ones(256, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(recompute):
        activation = weight * 3
        host = offload.pack(activation, ordered)
    torch.cuda.synchronize()
    assert host.sum().item() == 768


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
