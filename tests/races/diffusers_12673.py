"""`record_stream` is told the transfer stream, which the allocator knows already.

Source: huggingface/diffusers#12673.
Seen: weights were recorded for `torch.cuda.current_stream()` inside the block of the transfer stream on which they
were made. So nothing kept their memory until the forward pass had read it, and images were a mess.
Must be found: the product on the default stream beside the next copy, which gets the same memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    transfer, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    first, second = (torch.full((4096,), value).pin_memory() for value in (1.0, 2.0))
    with torch.cuda.stream(transfer):
        weight = first.to("cuda", non_blocking=True)
        weight.record_stream(compute if ordered else torch.cuda.current_stream())
    compute.wait_stream(transfer)
    output = weight * 3
    del weight
    with torch.cuda.stream(transfer):
        following = second.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert (output.sum().item(), following[0].item()) == (3 * 4096, 2)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
