"""Where the lines go that order work of a backward pass: the program's line is then that of the forward call."""

from __future__ import annotations

from typing import Any

import halstream as hs


def test_a_line_behind_the_call_of_the_backward_pass_is_not_suggested_for_a_hook(torch: Any) -> None:
    """The hook runs within that call: behind it a wait comes too late."""
    side = torch.cuda.Stream()
    kept = torch.zeros(64, device="cuda")
    x = torch.ones(64, device="cuda", requires_grad=True)
    y = x * 2

    def hook(gradient: Any) -> Any:
        with torch.cuda.stream(side):
            kept.copy_(gradient)
        return gradient

    y.register_hook(hook)
    total = y.sum()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        total.backward()
        torch.cuda.default_stream().wait_stream(side)
        torch.cuda.synchronize()
    found = [one for one in report if one.second.backward]
    assert found
    for one in found:
        assert not one.fix and "in the backward pass, before it gets there" in one.text, one.text


def test_two_accesses_of_a_recomputation_have_no_line_at_the_forward_call(torch: Any) -> None:
    side = torch.cuda.Stream()
    shared = torch.ones(64, device="cuda")
    x = torch.ones(64, device="cuda", requires_grad=True)
    torch.cuda.synchronize()

    def block(x: Any) -> Any:
        out = x + shared
        with torch.cuda.stream(side), torch.no_grad():
            shared.add_(1)
        torch.cuda.current_stream().wait_stream(side)
        return out.sin()

    with hs.sanitize(on="collect") as report:
        torch.utils.checkpoint.checkpoint(block, x, use_reentrant=True).sum().backward()
        torch.cuda.synchronize()
    both = [one for one in report if one.first.backward and one.second.backward]
    assert both
    for one in both:
        assert not one.fix and "in the backward pass" in one.text.partition("fix:")[2], one.text
