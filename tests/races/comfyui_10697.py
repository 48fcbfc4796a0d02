"""A weight is cast on the computing stream before that waits for the copy.

Source: Comfy-Org/ComfyUI#10697.
Seen: the copy of an offloaded weight was enqueued on the offload stream, and its cast to another type behind the
block, on the stream of the program. On a slow bus the cast read memory that was not copied yet: a black screen.
Must be found: the copy on the offload stream beside the cast on the default stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    offload, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    host = torch.full((256,), 2.0, dtype=torch.float16).pin_memory()
    with torch.cuda.stream(offload):
        weight = host.to("cuda", non_blocking=True)
        if ordered:
            weight = weight.float()
    if not ordered:
        weight = weight.float()
    compute.wait_stream(offload)
    output = weight * 3
    torch.cuda.synchronize()
    assert output.sum().item() == 1536


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
