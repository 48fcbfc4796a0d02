"""A gradient buffer belongs to the default stream, and is used on another one until it is dropped.

Source: NVIDIA/Megatron-LM#6187.
Seen: the buffer was made while the model was sharded, on the default stream, and consumed and replaced on the stream
of the reduce-scatter. Its memory went to the next tensor of the default stream while the reduction still read it.
Must be found: the reduction beside the tensor that gets its memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    reduce_scatter, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    shard = torch.zeros(4096, device="cuda")
    with torch.cuda.stream(reduce_scatter if ordered else compute):
        main_grad = torch.ones(4096, device="cuda")
    reduce_scatter.wait_stream(compute)
    with torch.cuda.stream(reduce_scatter):
        shard.add_(main_grad)
    del main_grad
    activation = torch.full((4096,), 9.0, device="cuda")
    torch.cuda.synchronize()
    assert (shard.sum().item(), activation[0].item()) == (4096, 9)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
