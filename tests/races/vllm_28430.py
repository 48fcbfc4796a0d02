"""Shared experts clone their input on their own stream, while the routed experts already change it.

Source: vllm-project/vllm#28430.
Seen: the hidden states were cloned inside the block of the shared experts' stream. The routed experts, on the main
stream, may write to the same tensor in place, so the clone had to be made before the streams part.
Must be found: the clone on the side stream beside the product in place on the default stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    experts, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    hidden = torch.ones(4, 64, device="cuda")
    shared_input = hidden.clone() if ordered else hidden
    experts.wait_stream(compute)
    with torch.cuda.stream(experts):
        if not ordered:
            shared_input = hidden.clone()
        shared = shared_input * 2
    shared_input.record_stream(experts)
    hidden.mul_(3)  # the routed experts
    compute.wait_stream(experts)
    output = hidden + shared
    torch.cuda.synchronize()
    assert output.sum().item() == 1280


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
