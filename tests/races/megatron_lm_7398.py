"""An activation is read back from pinned memory that its own offload is still writing.

Source: NVIDIA/Megatron-LM#7398.
Seen: where the backward pass came to an offloaded group before a prefetch, it reloaded the tensor on the spot, on
the current stream, without a wait for the event that the offload had recorded. Gradients were computed from what
was in the staging buffer before.
Must be found: the copy to the pinned buffer beside the copy out of it.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    d2h, staging = torch.cuda.Stream(), torch.zeros(256, pin_memory=True)
    activation = torch.full((256,), 3.0, device="cuda")
    reloaded = torch.zeros(256, device="cuda")
    d2h.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(d2h):
        staging.copy_(activation, non_blocking=True)
        offloaded = d2h.record_event()
    if ordered:
        torch.cuda.current_stream().wait_event(offloaded)
    reloaded.copy_(staging, non_blocking=True)
    torch.cuda.synchronize()
    assert reloaded.sum().item() == 768


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
