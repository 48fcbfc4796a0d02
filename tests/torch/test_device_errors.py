"""An operator that fails: its device is lost, as with an assertion in a CUDA kernel."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from conftest import Child
from halstream import testing

Hold = Callable[[Any], Any]

HERE = Path(__file__).name
#: The error, and the line that called the operator.
ERROR = rf"device-side assert triggered: aten::embedding: index out of range in self \(.*{HERE}:\d+ in fails\)"


def fails(torch: Any) -> Any:
    """Call an operator whose kernel fails; return its result."""
    weight = torch.ones(3, 2, device=f"cuda:{torch.cuda.current_device()}")
    return torch.nn.functional.embedding(torch.tensor([9]).to(weight.device), weight)


def test_F4_what_waits_for_a_failed_operator_hands_out_no_value(torch: Any, held: Hold, recovers: None) -> None:
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    gate = held(side)
    with torch.cuda.stream(side):
        # A copy from pageable memory would wait for the stream.
        weight = torch.ones(3, 2, device="cuda")
        y = torch.nn.functional.embedding(torch.full((1,), 9, device="cuda"), weight)
    torch.cuda.current_stream().wait_stream(side)
    total = y.sum()
    gate.open()
    for _ in range(2):
        for look in (total.item, y.tolist, y.cpu, lambda: total == 0, total.__bool__):
            with pytest.raises(
                torch.AcceleratorError, match=r"aten::embedding: index out of range .*test_device_err"
            ) as e:
                look()
            assert e.value.error_code == 710


@pytest.mark.parametrize(
    "call",
    ["synchronize", "stream.synchronize", "stream.query", "event.synchronize", "event.query", "event.record",
     "event.elapsed_time", "wait_event", "other", "new stream", "Tensor.to", "copy_", "accelerator"],
)  # fmt: skip
def test_F4_every_later_call_raises(torch: Any, recovers: None, call: str) -> None:
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    start, event = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    pinned = torch.zeros(2, device="cpu").pin_memory()
    x = torch.ones(2, device="cuda")
    for one in (start, event):
        one.record(stream)
    stream.synchronize()

    def synchronize_within_a_new_stream() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.synchronize()

    calls: dict[str, Callable[[], object]] = {
        "synchronize": torch.cuda.synchronize,
        "stream.synchronize": stream.synchronize,
        "stream.query": stream.query,
        "event.synchronize": event.synchronize,
        "event.query": event.query,
        "event.record": event.record,
        "event.elapsed_time": lambda: start.elapsed_time(event),
        "wait_event": lambda: other.wait_event(event),
        "other": other.synchronize,
        "new stream": synchronize_within_a_new_stream,
        "Tensor.to": lambda: torch.ones(2).to("cuda"),
        "copy_": lambda: pinned.copy_(x, non_blocking=True),
        "accelerator": torch.accelerator.synchronize,
    }
    fails(torch)
    with pytest.raises(torch.AcceleratorError, match=ERROR):
        torch.cuda.synchronize()
    with pytest.raises(torch.AcceleratorError, match=ERROR) as error:
        calls[call]()
    assert error.value.error_code == 710


def test_F4_other_threads_raise_it_too(torch: Any, recovers: None) -> None:
    fails(torch)
    caught: list[str] = []

    def look() -> None:
        for _ in range(2):
            try:
                torch.cuda.synchronize()
            except torch.AcceleratorError as exc:
                caught.append(str(exc))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(caught) == 4 and all("aten::embedding" in text and "in fails)" in text for text in caught), caught


def test_F4_dropping_and_emptying_stay_quiet(torch: Any, recovers: None, recwarn: pytest.WarningsRecorder) -> None:
    with hs.sanitize(on="collect"):
        x, pinned = torch.ones(1 << 20, device="cuda"), torch.ones(4).pin_memory()
        side = torch.cuda.Stream()
        x.record_stream(side)
        pinned.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        y = fails(torch)
        with pytest.raises(torch.AcceleratorError):
            y.cpu()
        testing_before = torch.cuda.memory_allocated()
        del x, pinned, y, side
        gc.collect()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_allocated() < testing_before
    assert not recwarn.list


def test_F4_another_device_goes_on_unless_it_waits(torch: Any, recovers: None) -> None:
    one = torch.ones(2, device="cuda:1")
    torch.cuda.synchronize(1)
    fails(torch)
    with pytest.raises(torch.AcceleratorError, match=ERROR):
        torch.cuda.synchronize(0)
    assert (one + 1).sum().item() == 4
    torch.cuda.synchronize(1)


def test_F4_a_copy_of_it_on_another_device_hands_out_no_value(torch: Any, held: Hold, recovers: None) -> None:
    weight, bad = torch.ones(3, 2, device="cuda"), torch.tensor([9], device="cuda")
    target = torch.zeros(1, 2, device="cuda:1")
    torch.cuda.synchronize()
    gate = held(torch.cuda.current_stream())
    target.copy_(torch.nn.functional.embedding(bad, weight))
    total = target.sum()
    gate.open()
    with pytest.raises(torch.AcceleratorError, match="aten::embedding: index out of range"):
        total.item()
    with pytest.raises(torch.AcceleratorError, match="aten::embedding: index out of range"):
        torch.cuda.synchronize(1)


def test_F4_backward_names_the_line_of_the_forward_call(torch: Any, recovers: None) -> None:
    class Fails(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad + fails(torch).sum()

    x = torch.ones(2, device="cuda", requires_grad=True)
    loss = Fails.apply(x).sum()
    with pytest.raises(torch.AcceleratorError, match="aten::embedding: index out of range"):
        loss.backward()
        x.grad.cpu()
    with pytest.raises(torch.AcceleratorError, match="aten::embedding: index out of range"):
        torch.cuda.synchronize()


def test_F4_an_operator_of_a_graph_that_fails_loses_the_device(
    torch: Any, captured: Callable[..., Any], recovers: None
) -> None:
    weight, index = torch.ones(3, 2, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    graph, y = captured(lambda: torch.nn.functional.embedding(index, weight).sum())
    graph.replay()
    assert y.item() == 2
    index.fill_(9)
    graph.replay()
    for _ in range(2):
        with pytest.raises(torch.AcceleratorError, match=rf"aten::embedding: index out of range in self \(.*{HERE}:"):
            y.item()
    with pytest.raises(torch.AcceleratorError, match="aten::embedding"):
        graph.replay()
    assert testing.recover() == []
    index.fill_(1)
    graph.replay()
    assert y.item() == 2


def test_F4_errors_of_the_call_lose_nothing(torch: Any) -> None:
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2, device="cuda"))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.ones(2, 3, device="cuda") @ torch.ones(2, 3, device="cuda")
    assert torch.ones(2, device="cuda").sum().item() == 2


NEVER = """
    import halstream.torch.cuda_on_host, torch

    def main():
        weight = torch.ones(3, 2, device="cuda")
        return torch.nn.functional.embedding(torch.tensor([9], device="cuda"), weight)

    y = main()
"""


def test_F4_a_program_that_never_looked_says_so_and_ends_with_1(program: Child) -> None:
    done = program(NEVER)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("halstream: the program ended without a look at the error of cuda:0: aten::embedding: "), (
        line
    )
    assert "index out of range in self (" in line and ":6 in main)" in line, line


def test_F4_a_program_that_looked_or_failed_says_no_more(program: Child) -> None:
    done = program(NEVER + "\n    y.cpu()")
    assert done.returncode == 1 and "never" not in done.stderr and "without a look" not in done.stderr, done.stderr
    assert "AcceleratorError: CUDA error: device-side assert triggered: aten::embedding" in done.stderr
    caught = "\n    try: torch.cuda.synchronize()\n    except torch.AcceleratorError: print('looked')"
    done = program(NEVER + caught)
    assert (done.returncode, done.stdout, done.stderr) == (0, "looked\n", "")


RACE = """
    from halstream import _native
    import halstream.torch.cuda_on_host, torch

    side = torch.cuda.Stream()
    weight, x = torch.ones(3, 2, device="cuda"), torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    y = torch.nn.functional.embedding(torch.full((1,), 9, device="cuda"), weight)
    while _native.pending(): pass
    with torch.cuda.stream(side):
        x.add_(1)
    x.mul_(2)
    print(y.sum().item())
"""


def test_F4_the_sanitizer_follows_the_program_to_where_it_looks(program: Child) -> None:
    done = program(RACE, env={"HALSTREAM_SANITIZE": "1"})
    assert done.returncode == 1 and done.stdout == ""
    assert 'File "' in done.stderr and "print(y.sum().item())" in done.stderr, done.stderr
    assert "AcceleratorError: CUDA error: device-side assert triggered: aten::embedding" in done.stderr
    assert "aten::add_ writes on stream 1" in done.stderr and "aten::mul_" in done.stderr, done.stderr
