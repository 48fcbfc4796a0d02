"""A hook copies a gradient to the host on a stream that waits for nothing.

Source: pytorch/ao#584, found in review.
Seen: an optimizer on the host takes each gradient in a hook, on a stream for such copies. Without a wait for the
stream of the backward pass the copies ended before the kernels that compute the gradients.
Must be found: the backward operator beside the copy to the host.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    d2h = torch.cuda.Stream()
    weight = torch.ones(256, device="cuda", requires_grad=True)
    on_host = torch.zeros(256, pin_memory=True)
    torch.cuda.synchronize()

    def copy_gradient(parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        if ordered:
            d2h.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(d2h):
            on_host.copy_(parameter.grad, non_blocking=True)
        parameter.grad.record_stream(d2h)

    weight.register_post_accumulate_grad_hook(copy_gradient)
    (weight * 3).sum().backward()
    torch.cuda.synchronize()
    assert on_host.sum().item() == 768


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
