"""A block of the KV cache is loaded while a previous request still reads it.

Source: vllm-project/vllm#47282.
Seen: once stores waited for the computing stream, loads still did not. A freed block became the target of a load,
which overwrote it under the attention of the request before: 4 % of the answers were garbled.
Must be found: the read of the block beside the copy on the load stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    load, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    cache = torch.ones(8, 64, device="cuda")
    pool = torch.full((8, 64), 5.0).pin_memory()
    torch.cuda.synchronize()
    attention = cache[3] * 2
    if ordered:
        load.wait_event(compute.record_event())
    with torch.cuda.stream(load):
        cache[3].copy_(pool[3], non_blocking=True)
    torch.cuda.synchronize()
    assert attention.sum().item() == 128


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
