"""Gradients are reduced behind the default stream, and are written on another one.

Source: deepspeedai/DeepSpeed#7898.
Seen: autograd runs each backward operator on the stream of its forward operator. Where that was no default stream,
`wait_stream(default_stream())` waited for the wrong one; the reduction read gradients that were not written yet,
and weights became NaN.
Must be found: the backward operator on the side stream beside the copy into the bucket.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    gather, reduce = torch.cuda.Stream(), torch.cuda.Stream()
    weight = torch.ones(256, device="cuda", requires_grad=True)
    bucket = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()

    def reduce_gradient(gradient: torch.Tensor) -> None:
        ready = torch.cuda.current_stream() if ordered else torch.cuda.default_stream()
        reduce.wait_stream(ready)
        with torch.cuda.stream(reduce):
            bucket.copy_(gradient)
        gradient.record_stream(reduce)

    with torch.cuda.stream(gather):
        gathered = weight * 1
        output = gathered * 3
    gathered.register_hook(reduce_gradient)
    torch.cuda.current_stream().wait_stream(gather)
    output.sum().backward()
    torch.cuda.synchronize()
    assert bucket.sum().item() == 768


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
