"""Many operators at once: bounded backlogs, errors among them, forks, and an end of the process with work pending."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream import testing
from halstream.testing import Gate

Hold = Callable[[Any], Gate]

pytestmark = pytest.mark.timeout(300)

# As torch/backlog.cpp has it.
MOST_PENDING = 4096


@pytest.fixture
def pending(redirected: Any) -> Callable[[], int]:
    """Return a function that says how many operators have not run yet."""
    module = sys.modules["halstream_torch_device"]
    return lambda: module.counters()["pending"]


def test_the_host_is_ahead_of_the_streams_by_so_many_operators_only(torch: Any, pending: Callable[[], int]) -> None:
    torch.cuda.synchronize()
    # Each takes longer than its call.
    total, one = torch.zeros(1 << 17, device="cuda"), torch.ones(1 << 17, device="cuda")
    most = 0
    for _ in range(3 * MOST_PENDING):
        total += one
        most = max(most, pending())
    # The sampled number counts an operator that is being released, too.
    assert MOST_PENDING - 1 <= most <= MOST_PENDING + 1
    assert bool((total == 3 * MOST_PENDING).all())


def test_a_stream_that_waits_for_the_host_takes_more(torch: Any, pending: Callable[[], int], hold: Hold) -> None:
    s = torch.cuda.Stream()
    gate = hold(hs.Stream.from_handle(s.cuda_stream))
    with torch.cuda.stream(s):
        total = torch.zeros(8, device="cuda")
        for _ in range(MOST_PENDING + 100):
            total += 1
    assert pending() > MOST_PENDING
    gate.open()
    s.synchronize()
    assert total.tolist() == [MOST_PENDING + 100.0] * 8


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "promotes types": lambda torch, a, b: a.to(torch.int32) + b.half(),
    "broadcasts": lambda torch, a, b: a[:, :1] * b[:1],
    "of transposed tensors": lambda torch, a, b: a.t() + b.t(),
    "channels last": lambda torch, a, b: a.reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last) * 2,
    "divides integers": lambda torch, a, b: a.int() / 2,
    "divides and rounds": lambda torch, a, b: torch.div(a.int(), 5, rounding_mode="floor"),
    "compares": lambda torch, a, b: a > b,
    "compares with a number": lambda torch, a, b: a == 2,
    "a product": lambda torch, a, b: a @ b.t(),
    "a product with a sum": lambda torch, a, b: torch.addmm(b[:4, :4], a, b.t(), alpha=2),
    "a sum": lambda torch, a, b: a.sum((0, 1), keepdim=True),
    "a sum in another type": lambda torch, a, b: a.sum(1, dtype=torch.float64),
    "a mean": lambda torch, a, b: a.mean(0),
    "the largest": lambda torch, a, b: a.max(1)[1],
    "softmax": lambda torch, a, b: a.softmax(0),
    "gelu": lambda torch, a, b: torch.nn.functional.gelu(a, approximate="tanh"),
    "concatenated": lambda torch, a, b: torch.cat((a, b), 1),
    "indexed": lambda torch, a, b: a[torch.tensor([[0, 1], [1, 0]], device=a.device), 1:3],
    "sorted": lambda torch, a, b: a.sort(dim=1, descending=True, stable=True)[0],
    "a triangle": lambda torch, a, b: a.tril(-1),
    "a power": lambda torch, a, b: a.abs() ** 0.5,
    "clamped": lambda torch, a, b: a.clamp(max=1),
    "the loss of classes": lambda torch, a, b: torch.nn.functional.nll_loss(
        a, torch.tensor([1, 0, 2, 1], device=a.device)
    ),
    "pooled": lambda torch, a, b: torch.nn.functional.max_pool2d(a.reshape(1, 2, 3, 4), 2, return_indices=True)[1],
    "in place": lambda torch, a, b: a.clone().mul_(b).add_(1, alpha=2).sigmoid_(),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_have_the_sizes_strides_and_types_of_the_cpu(torch: Any, name: str) -> None:
    a, b = torch.linspace(-3, 3, 24).reshape(4, 6), torch.linspace(5, -5, 24).reshape(4, 6)
    here, there = CALLS[name](torch, a, b), CALLS[name](torch, a.cuda(), b.cuda())
    assert (there.shape, there.stride(), there.dtype) == (here.shape, here.stride(), here.dtype)
    assert torch.allclose(there.cpu(), here, equal_nan=True)


def test_a_wrong_call_is_an_error_of_the_call(torch: Any) -> None:
    a = torch.ones(2, 3, device="cuda")
    with pytest.raises(RuntimeError, match="must match the size"):
        a + torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        a @ a
    with pytest.raises(RuntimeError, match="result type"):
        torch.ones(2, dtype=torch.int64, device="cuda").mul_(0.5)
    with pytest.raises(IndexError, match="out of range"):
        a.sum(5)


def test_pinned_blocks_are_given_out_again(torch: Any) -> None:
    x = torch.ones(3 << 20, dtype=torch.uint8).pin_memory()
    address = x.data_ptr()
    there = x.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    del x
    gc.collect()
    again = torch.empty(3 << 20, dtype=torch.uint8, pin_memory=True)
    assert again.data_ptr() == address and again.is_pinned()
    assert int(there.sum()) == 3 << 20


def test_a_pinned_block_in_use_on_two_streams_is_given_out_after_both(torch: Any, hold: Hold) -> None:
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    gates = [hold(hs.Stream.from_handle(s.cuda_stream)) for s in streams]
    x = torch.ones(5 << 20, dtype=torch.uint8).pin_memory()
    address = x.data_ptr()
    copies = []
    for s in streams:
        with torch.cuda.stream(s):
            copies.append(x.to("cuda", non_blocking=True))
    del x
    gc.collect()
    for gate, s in zip(gates, streams, strict=True):
        other = torch.zeros(5 << 20, dtype=torch.uint8, pin_memory=True)
        assert other.data_ptr() != address
        del other
        gate.open()
        s.synchronize()
    # Nothing was written over what the copies read.
    assert [int(copy.sum()) for copy in copies] == [5 << 20] * 2


def test_errors_among_many_operators_keep_nothing(torch: Any, pending: Callable[[], int], recovers: None) -> None:
    for _ in range(20):
        weight, bad = torch.ones(3, 2, device="cuda"), torch.tensor([7], device="cuda")
        torch.cuda.synchronize()
        with pytest.raises(torch.AcceleratorError, match="index out of range"):
            for _ in range(50):
                torch.nn.functional.embedding(bad, weight)
            torch.cuda.synchronize()
        assert testing.recover() == []
        assert (weight * 2).tolist() == [[2, 2]] * 3
    torch.cuda.synchronize()
    end = time.monotonic() + 10
    while pending() and time.monotonic() < end:  # what was dropped is released by the thread that dropped it
        time.sleep(0.001)
    assert pending() == 0


def test_a_program_goes_on_after_it_ran_out_of_memory(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import torch
        failed = 0
        for _ in range(20):
            kept = []
            try:
                while True:
                    kept.append(torch.ones(1 << 20, device="cuda") * 2)
            except torch.cuda.OutOfMemoryError:
                failed += 1
            last = float(kept[-1][-1])
        print(failed, last)
        """,
        env={"HALSTREAM_HOST_MEMORY": str(64 << 20)},
    )
    assert (done.returncode, done.stdout) == (0, "20 2.0\n"), done.stderr


ENDS = {
    "at the last line": "",
    "by sys.exit": "import sys; sys.exit(0)",
    "with an error": "raise SystemExit(0) from ValueError()",
    "with a thread that enqueues": "threading.Thread(target=lambda: [x + 1 for _ in range(500)]).start()",
    "after a failure": "torch.nn.functional.embedding(torch.tensor([9], device='cuda'), x)",
}


@pytest.mark.parametrize(
    ("end", "sanitized"),
    [*((end, False) for end in ENDS), ("at the last line", True)],
    ids=[*ENDS, "at the last line, with the sanitizer"],
)
def test_F14_a_program_ends_with_thousands_of_operators_pending(program: Any, end: str, sanitized: bool) -> None:
    done = program(
        f"""
        import halstream.torch.cuda_on_host
        import halstream, threading, torch
        if {sanitized}:
            scope = halstream.sanitize(on="collect")
            scope.__enter__()
        x = torch.ones(64, 64, device="cuda")
        model = torch.nn.Linear(64, 64).cuda()
        torch.cuda._sleep(100_000_000)
        for _ in range(200):
            model(x).square().sum().backward()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(100_000_000)
            kept = [x @ x for _ in range(500)]
        print("done", flush=True)
        {ENDS[end]}
        """
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "terminate" not in done.stderr and "Fatal" not in done.stderr, done.stderr


def test_F12_workers_may_be_forked_while_thousands_of_operators_are_pending(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import torch

        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 64

            def __getitem__(self, index):
                return torch.full((32, 32), float(index)) @ torch.eye(32)

        x = torch.ones(8, 8, device="cuda")
        for epoch in range(3):
            for _ in range(1000):
                x = x * 1.0
            loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=True)
            total = sum(batch.cuda(non_blocking=True).mean() for batch in loader)
            print(float(total), float(x.sum()))
        """
    )
    assert (done.returncode, done.stdout) == (0, "252.0 64.0\n" * 3), done.stderr
