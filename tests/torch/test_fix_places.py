"""Where the lines go that order work of a backward pass: into its hooks and recomputations, where there are any."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream._checks import variables


def _line_of(text: str) -> str:
    """Return the line of this file that a report's fix is put before."""
    (number,) = re.findall(r"fix: before .*test_fix_places\.py:(\d+)\n", text)
    return Path(__file__).read_text().splitlines()[int(number) - 1]


def test_the_line_for_a_hook_of_the_backward_pass_is_in_the_hook(torch: Any) -> None:
    """The hook runs within the call of the pass: behind that a wait comes too late."""
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
    (found,) = report
    assert found.fix == "side.wait_stream(torch.cuda.default_stream())", found.text
    assert "in test_the_line_for_a_hook_of_the_backward_pass_is_in_the_hook.<locals>.hook" in found.text
    assert _line_of(found.text) == "            kept.copy_(gradient)", found.text


def test_the_line_for_two_accesses_of_a_recomputation_is_between_them(torch: Any) -> None:
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
    assert len(report) == 2  # in the forward call and in the backward pass
    for one in report:
        assert one.fix == "side.wait_stream(torch.cuda.default_stream())", one.text
        assert _line_of(one.text) == "            shared.add_(1)", one.text


def test_a_stream_without_a_name_waits_as_the_current_one_of_its_block(torch: Any) -> None:
    """A wait of the host would order them, too."""
    x = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        x.add_(1)
        with torch.cuda.stream(torch.cuda.Stream()):
            x.mul_(2)
        torch.cuda.synchronize()
    (found,) = report
    assert found.fix == "torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())", found.text
    assert "not tried" not in found.text


def test_the_stream_that_a_library_makes_current_has_no_name_around_its_call(torch: Any) -> None:
    x = torch.zeros(64, device="cuda")
    space: dict[str, Any] = {"torch": torch}
    source = "def work(x):\n    with torch.cuda.stream(torch.cuda.Stream()):\n        return x.mul_(2)\n"
    exec(compile(source, torch.__file__, "exec"), space)  # as code of a package that is installed
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        x.add_(1)
        space["work"](x)
        torch.cuda.synchronize()
    (found,) = report
    assert "current_stream" not in found.fix, found.text


def test_no_mode_of_the_program_sees_that_names_are_looked_for(torch: Any) -> None:
    from torch.overrides import TorchFunctionMode

    seen: list[str] = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    x, own = torch.zeros(64, device="cuda"), hs.Stream()
    lazy = torch._lazy_clone(torch.zeros(64))
    with hs.sanitize(on="collect"), Mode():
        x.add_(1)
        own.nop()
    assert seen == ["add_"]
    assert torch._C._is_cow_tensor(lazy)


def test_what_a_handler_of_a_signal_raises_in_an_operator_arrives_behind_it(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note(frame: Any, site: int) -> None:
        if not raised:
            signal.raise_signal(signal.SIGUSR1)

    def handler(number: int, frame: Any) -> None:
        raised.append(number)
        raise TimeoutError

    raised: list[int] = []
    x = torch.zeros(64, device="cuda")
    monkeypatch.setattr(variables, "_note", note)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with hs.sanitize(on="collect"), pytest.raises(TimeoutError):
            x.add_(1)
            for _ in range(1000):
                len(raised)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert raised and x.tolist() == [1.0] * 64


def test_the_event_behind_a_copy_is_waited_for_before_its_source_is_written_again(torch: Any) -> None:
    """It is none until it is recorded, in the first turn of the loop, where a wait for it passes."""
    pinned, x = torch.zeros(64).pin_memory(), torch.zeros(2, 64, device="cuda")
    done = torch.cuda.Event()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        for step in range(2):
            pinned.fill_(step)
            x[step].copy_(pinned, non_blocking=True)
            done.record()
        torch.cuda.synchronize()
    (found,) = report
    assert found.fix == "done.synchronize()" and "not tried" not in found.text, found.text


@pytest.mark.parametrize("kept", [False, True])
def test_memory_that_a_backward_pass_reads_is_kept_behind_the_forward_call(torch: Any, kept: bool) -> None:
    """A prefetcher's batch is freed on the stream of the copies while the default one may still read it."""
    copies, weight = torch.cuda.Stream(), torch.ones(1024, device="cuda", requires_grad=True)
    batches = [torch.ones(1024, pin_memory=True) for _ in range(3)]
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        for batch in batches:
            with torch.cuda.stream(copies):
                inputs = batch.to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(copies)
            product = weight * inputs
            if kept:
                inputs.record_stream(torch.cuda.default_stream())
            product.sum().backward()
            del inputs, product
        torch.cuda.synchronize()
    assert [one.fix for one in report] == ([] if kept else ["inputs.record_stream(torch.cuda.default_stream())"]), (
        report
    )
