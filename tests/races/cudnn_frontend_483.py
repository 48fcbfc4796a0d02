"""A library launches on the default stream whatever stream is current.

Source: NVIDIA/cudnn-frontend#483.
Seen: without an explicit stream, calls went to the legacy default stream, while torch's operators around them ran
on the stream of the program. Attention on a side stream read stale inputs in seven of eight runs.
Must be found: the program's write on its stream beside the library's read on the default stream.
"""

from __future__ import annotations

import torch


def attention(query: torch.Tensor, out: torch.Tensor, ordered: bool) -> None:
    stream = torch.cuda.current_stream() if ordered else torch.cuda.default_stream()
    with torch.cuda.stream(stream):
        torch.mul(query, 2, out=out)


def _run(ordered: bool) -> None:
    program = torch.cuda.Stream()
    query = torch.zeros(256, device="cuda")
    out = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(program):
        query.fill_(4.0)
        attention(query, out, ordered)
    torch.cuda.synchronize()
    assert out.sum().item() == 2048


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
