"""A weight of the offload stream is dropped before the computing stream has used it.

Source: Comfy-Org/ComfyUI#10501.
Seen: weights came on an offload stream, to which their memory belongs, and went out of scope right after the call.
The next weight was copied into the same memory while the layer still read it: black images.
Must be found: the product on the default stream beside the next copy on the offload stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    offload, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    layers = [torch.full((4096,), value).pin_memory() for value in (1.0, 2.0)]
    x = torch.ones(4096, device="cuda")
    outputs = []
    for layer in layers:
        with torch.cuda.stream(offload):
            weight = layer.to("cuda", non_blocking=True)
        compute.wait_stream(offload)
        outputs.append(x * weight)
        if ordered:
            offload.wait_stream(compute)
        del weight
    torch.cuda.synchronize()
    assert [output.sum().item() for output in outputs] == [4096, 8192]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
