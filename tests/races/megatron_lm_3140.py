"""The event behind a copy is recorded on the stream of the other direction.

Source: NVIDIA/Megatron-LM#3140.
Seen: updated parameters were copied to the device on the stream for that, but the event for which the main stream
waits was recorded on the stream that copies to the host. The next forward pass could read old parameters.
Must be found: the copy to the device beside the product on the default stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    h2d, d2h = torch.cuda.Stream(), torch.cuda.Stream()
    updated = torch.full((256,), 5.0).pin_memory()
    parameter = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(h2d):
        parameter.copy_(updated, non_blocking=True)
    copied = (h2d if ordered else d2h).record_event()
    torch.cuda.current_stream().wait_event(copied)
    output = parameter * 2
    torch.cuda.synchronize()
    assert output.sum().item() == 2560


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
