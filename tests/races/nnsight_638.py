"""A thread works on the default stream, beside the stream that its starter uses.

Source: ndif-team/nnsight#638.
Seen: interventions into a model run on threads of their own, which begin on the default stream, while the forward
pass used another one. What they read was not written yet: results varied from run to run.
Must be found: the forward pass's write beside the thread's clone on the default stream.
"""

from __future__ import annotations

import threading

import torch


def _run(ordered: bool) -> None:
    forward = torch.cuda.Stream()
    hidden = torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    taken = []

    def intervene(stream: torch.cuda.Stream) -> None:
        if ordered:
            torch.cuda.set_stream(stream)
        taken.append(hidden.clone())

    with torch.cuda.stream(forward):
        hidden.add_(2)
        thread = threading.Thread(target=intervene, args=(torch.cuda.current_stream(),))
        thread.start()
        thread.join()
    torch.cuda.synchronize()
    assert taken[0].sum().item() == 512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
