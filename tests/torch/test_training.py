"""Training loops: the right ones compute what the CPU computes, the wrong ones are found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import halstream as hs
import prefetching
import pytest


def test_backward_runs_on_the_streams_of_forward(torch: Any) -> None:
    w = torch.randn(8, 8, requires_grad=True)
    v = w.detach().cuda().requires_grad_()
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s), hs.sanitize(on="raise"):
        loss = (v @ v).relu().sum()
        loss.backward()
    torch.cuda.current_stream().wait_stream(s)
    (w @ w).relu().sum().backward()
    assert torch.equal(v.grad.cpu(), w.grad)


def test_backward_outside_of_the_stream_is_ordered_by_torchs_rules(torch: Any) -> None:
    v = torch.randn(8, 8, device="cuda", requires_grad=True)
    s = torch.cuda.Stream()
    with hs.sanitize(on="raise"):
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            loss = (v * 2).square().sum()
        torch.cuda.current_stream().wait_stream(s)
        loss.backward()
        total = v.grad.sum()
    assert torch.allclose(v.grad, 8 * v) and total.is_cuda


def test_a_prefetcher_trains_as_the_cpu_does(torch: Any) -> None:
    with hs.sanitize(on="raise"):
        assert prefetching.train(torch) == prefetching.train(torch, device="cpu")


def test_the_sanitizer_finds_the_deleted_wait(torch: Any) -> None:
    with hs.sanitize(on="collect") as report:
        prefetching.train(torch, wait=False)
    assert report.races
    for finding in report.races:
        assert finding.first.frames[0].file.endswith(("prefetching.py", "test_training.py")), str(finding)
    assert any("self.batch" in str(finding) for finding in report.races)
    # Where the prefetcher makes the batch: the stream has no name where the batch is used.
    source = Path(prefetching.__file__).read_text().splitlines()
    (place,) = {int(number) for number in re.findall(r"fix: after .*prefetching\.py:(\d+)\n", str(report))}
    assert source[place - 1].strip() == "self.batch = self.batch.float().sub_(0.5).mul_(2)"
    assert {f.fix for f in report.races} == {"import torch; torch.cuda.default_stream().wait_stream(self.stream)"}, str(
        report
    )


def test_the_schedule_latest_gives_wrong_numbers_without_the_wait(torch: Any) -> None:
    right = prefetching.train(torch, device="cpu")
    with hs.testing.schedule("latest"):
        assert prefetching.train(torch) == right
    # Other batches than before: memory that is used again may still hold the right ones.
    right = prefetching.train(torch, device="cpu", seed=4)
    with hs.testing.schedule("latest"):
        assert prefetching.train(torch, wait=False, seed=4) != right


@pytest.mark.parametrize("spec", ["fifo", "earliest", "random 3"])
def test_a_right_program_is_right_under_every_schedule(torch: Any, spec: str) -> None:
    right = prefetching.train(torch, device="cpu")
    with hs.testing.schedule(spec):
        assert prefetching.train(torch) == right


def test_mixed_precision_on_cuda(torch: Any) -> None:
    model = torch.nn.Linear(8, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    before = model.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(torch.ones(2, 8, device="cuda"))
            assert out.dtype == torch.float16 and torch.is_autocast_enabled("cuda")
            loss = out.float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert not torch.equal(model.weight, before) and scaler.get_scale() > 0


def test_the_scaler_skips_a_step_with_infinite_gradients(torch: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=16.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1, 1] and scaler.get_scale() == 8


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_optimizers_give_the_weights_of_the_cpu(torch: Any, name: str) -> None:
    def weights(device: str) -> Any:
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
        data = torch.linspace(-1, 1, 12).reshape(3, 4).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            model(data).square().sum().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    for there, here in zip(weights("cuda"), weights("cpu"), strict=True):
        assert torch.allclose(there, here, rtol=1e-6, atol=1e-7)


def test_checkpointing_and_hooks_of_saved_tensors(torch: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    x = torch.randn(4, 4, device="cuda", requires_grad=True)
    checkpoint(lambda t: (t @ t).sin().sum(), x, use_reentrant=False).backward()
    grad = x.grad.clone()
    x.grad = None
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        (x @ x).sin().sum().backward()
    assert torch.allclose(x.grad, grad)
