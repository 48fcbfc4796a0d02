"""Embeddings of a prompt are cast on torch's stream, and the runner uses its own.

Source: NVIDIA/TensorRT-LLM#6425.
Seen: where the type of the input differs from that of the model, the runner casts it with torch and hands the result
to an engine on another stream. In about one of twenty runs the logits were NaN.
Must be found: the cast on the default stream beside the runner's read.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    runner = torch.cuda.Stream()
    prompt = torch.full((4, 64), 0.5, dtype=torch.float16, device="cuda")
    torch.cuda.synchronize()
    table = prompt.to(torch.bfloat16)
    if ordered:
        torch.cuda.current_stream().synchronize()
    with torch.cuda.stream(runner):
        logits = table.float() * 2
    torch.cuda.synchronize()
    assert logits.sum().item() == 256


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
