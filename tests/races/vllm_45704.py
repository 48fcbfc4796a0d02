"""Blocks of the KV cache are stored to the host while they are still being computed.

Source: vllm-project/vllm#45704.
Seen: the connector for CPU offload took blocks for written because the scheduler had counted their tokens. That is
bookkeeping of the host: nothing ordered the store stream behind the computing stream, and text came out garbled.
Must be found: the writing of the block beside the copy on the store stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    store, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    cache = torch.zeros(8, 64, device="cuda")
    pool = torch.zeros(8, 64, pin_memory=True)
    torch.cuda.synchronize()
    cache[2].fill_(1.5)  # attention writes a block
    if ordered:
        store.wait_event(compute.record_event())
    with torch.cuda.stream(store):
        pool[2].copy_(cache[2], non_blocking=True)
    torch.cuda.synchronize()
    assert pool[2].sum().item() == 96


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
