"""What the sanitizer sees of the host's own reads and writes of tensors that streams copy from and to."""

from __future__ import annotations

import copy
import io
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest


def _numpy(name: str) -> Callable[[Any], Any]:
    def read(x: Any) -> Any:
        import numpy

        return getattr(numpy, name)(x)

    return read


READS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "item": lambda x: x[1].item(),
    "bool": lambda x: bool(x[1] > 0),
    "iteration": lambda x: [float(one) for one in x],
    "format": lambda x: f"{x[1]:.2f}",
    "repr": repr,
    "tolist": lambda x: x.tolist(),
    "storage.tolist": lambda x: x.untyped_storage().tolist(),
    "another type for NumPy": lambda x: x.__array__("float64"),
    "clone": lambda x: x.clone(),
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "arithmetic": lambda x: x * 2 + 1,
    "copy to another": lambda x: x.new_zeros(4).copy_(x),
}

WRITES: dict[str, Callable[[Any], Any]] = {
    "fill_": lambda x: x.fill_(3),
    "copy_": lambda x: x.copy_(x.new_ones(4)),
    "add_": lambda x: x.add_(1),
    "index": lambda x: x.__setitem__(2, 9.0),
    "zero_": lambda x: x[1:3].zero_(),
}


def _races(work: Callable[[], Any]) -> list[Any]:
    with hs.sanitize(on="collect") as report:
        work()
        hs.synchronize()
    assert not report.by_host_timing
    return list(report)


@pytest.mark.parametrize("name", READS)
def test_reading_a_copy_before_it_is_done_is_reported(torch: Any, name: str) -> None:
    x = torch.arange(4.0, device="cuda")

    def work(wait: bool) -> None:
        y = x.to("cpu", non_blocking=True)
        assert y.is_pinned()
        if wait:
            torch.cuda.current_stream().synchronize()
        READS[name](y)

    (found,) = _races(lambda: work(wait=False))
    assert (found.first.operation, found.second.kind) == ("aten::copy_", "host read")
    needs = "import torch; " if name in ("numpy.asarray", "numpy.from_dlpack") else ""  # `read` knows no `torch`
    assert found.fix == f"{needs}torch.cuda.default_stream().synchronize()"
    assert not _races(lambda: work(wait=True))


VIEWS: dict[str, Callable[[Any], Any]] = {
    "numpy()": lambda x: x.numpy(),
    "numpy.asarray": _numpy("asarray"),
    "numpy.from_dlpack": _numpy("from_dlpack"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_pending_copy_reads_nothing_and_is_counted(torch: Any, name: str) -> None:
    x = torch.arange(4.0, device="cuda")
    with hs.sanitize(on="collect") as report:
        view = VIEWS[name](x.to("cpu", non_blocking=True))
        torch.cuda.synchronize()
        assert view.sum() == 6
        VIEWS[name](torch.zeros(4))  # which no stream copies to
    assert not report.all, str(report)
    assert report.functions.views == 1
    assert "1 view of memory that streams copy from or to was handed out" in report.functions.text


def test_torch_save_of_a_pending_copy_is_reported(torch: Any) -> None:
    x = torch.arange(4.0, device="cuda")
    (found,) = _races(lambda: torch.save({"x": x.to("cpu", non_blocking=True)}, io.BytesIO()))
    assert found.second.kind == "host read"


@pytest.mark.parametrize("name", WRITES)
def test_refilling_a_pinned_source_before_its_copy_is_done_is_reported(torch: Any, name: str) -> None:
    s = torch.cuda.Stream()
    x = torch.ones(4).pin_memory()

    def work(wait: bool) -> None:
        with torch.cuda.stream(s):
            there = x.to("cuda", non_blocking=True)
            copied = s.record_event()
        if wait:
            copied.synchronize()
        WRITES[name](x)
        del there

    (found,) = _races(lambda: work(wait=False))
    assert (found.first.operation, found.first.write, found.second.kind) == ("aten::copy_", False, "host write")
    assert found.fix == "copied.synchronize()"
    assert not _races(lambda: work(wait=True))


def test_only_the_bytes_that_both_touch_count(torch: Any) -> None:
    x, y = torch.arange(4.0, device="cuda"), torch.zeros(8).pin_memory()

    def work(read: slice) -> None:
        y[4:].copy_(x, non_blocking=True)
        y[read].sum()

    assert not _races(lambda: work(slice(0, 4)))
    (found,) = _races(lambda: work(slice(3, 5)))
    assert (found.start - y.data_ptr(), found.nbytes) == (16, 4)


def _to_pageable(torch: Any, x: Any) -> Any:
    return torch.zeros(4).copy_(x, non_blocking=True)


def _to_another_layout(torch: Any, x: Any) -> Any:
    return torch.zeros(8).pin_memory()[::2].copy_(x, non_blocking=True)


@pytest.mark.parametrize("copy_to", [_to_pageable, _to_another_layout])
def test_F6_a_copy_to_pageable_memory_is_made_and_orders_nothing(torch: Any, copy_to: Callable[..., Any]) -> None:
    x = torch.arange(4.0, device="cuda")

    def work(wait: str) -> None:
        torch.cuda._sleep(20_000_000)
        y = copy_to(torch, x)
        if wait == "stream":
            torch.cuda.current_stream().synchronize()
        elif wait == "event":
            torch.cuda.current_stream().record_event().synchronize()
        assert y.tolist() == [0, 1, 2, 3]
        y.add_(1)

    found = _races(lambda: work(wait=""))
    assert {(one.first.operation, one.second.kind) for one in found} >= {("aten::copy_", "host read")}
    assert found[0].fix == "torch.cuda.default_stream().synchronize()"
    assert not _races(lambda: work(wait="stream"))
    assert not _races(lambda: work(wait="event"))


@pytest.mark.parametrize("copied", ["copy_", "to", "cpu"])
def test_F6_a_copy_that_blocks_orders_itself(torch: Any, copied: str) -> None:
    x = torch.arange(4.0, device="cuda")
    copies: dict[str, Callable[[], Any]] = {
        "copy_": lambda: torch.zeros(4).copy_(x),
        "to": lambda: x.to("cpu"),
        "cpu": lambda: x.cpu(),
    }
    assert not _races(lambda: copies[copied]().add_(1).tolist())


def test_F6_a_copy_back_comes_after_the_copy_of_its_stream(torch: Any) -> None:
    x, y, z = torch.arange(4.0, device="cuda"), torch.zeros(4), torch.zeros(4, device="cuda")
    side = torch.cuda.Stream()

    def work(back: Any) -> None:
        side.wait_stream(torch.cuda.current_stream())
        y.copy_(x, non_blocking=True)
        with torch.cuda.stream(back):
            z.copy_(y, non_blocking=True)
        torch.cuda.synchronize()

    assert not _races(lambda: work(torch.cuda.current_stream()))
    (found,) = _races(lambda: work(side))
    assert (found.first.operation, found.second.kind) == ("aten::copy_", "host read")


def test_memory_that_follows_a_pageable_copy_at_its_address_is_not_looked_at(torch: Any) -> None:
    x, memory = torch.arange(4.0, device="cuda"), torch.zeros(4).numpy()

    def work() -> None:
        torch.from_numpy(memory).copy_(x, non_blocking=True)
        torch.from_numpy(memory).sum()  # a storage of its own

    assert not _races(work)


def test_views_and_sizes_read_nothing(torch: Any) -> None:
    x = torch.arange(4.0, device="cuda")

    def work() -> None:
        y = x.to("cpu", non_blocking=True)
        assert y.view(2, 2).t()[0].shape == (2,) and y.is_pinned() and torch.empty_like(y).numel() == 4
        y.to("cuda", non_blocking=True).add_(1)  # in the order of the stream

    assert not _races(work)


def test_a_thread_that_reads_without_waiting_is_reported(torch: Any) -> None:
    x = torch.arange(4.0, device="cuda")

    def work(wait: bool) -> None:
        y = x.to("cpu", non_blocking=True)
        done = torch.cuda.Event()
        done.record()

        def read() -> None:
            if wait:
                done.synchronize()
            y.tolist()

        thread = threading.Thread(target=read)
        thread.start()
        thread.join(10)

    (found,) = _races(lambda: work(wait=False))
    assert found.second.kind == "host read" and found.second.frames[0].function.endswith("read")
    assert not _races(lambda: work(wait=True))


def test_a_loader_that_pins_its_batches_on_a_thread_is_clean(torch: Any) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(32.0).view(8, 4))

    def work() -> None:
        total = torch.zeros(4, device="cuda")
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, num_workers=0, pin_memory=True):
            assert batch.is_pinned()
            total += batch.to("cuda", non_blocking=True).sum(0)
        assert total.sum().item() == sum(range(32))

    assert not _races(work)


PROGRAM = """
import halstream as hs
import halstream.torch.cuda_on_host
import torch

def watched():
    return torch._C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "BackendSelect")

assert not watched() and torch.Tensor.tolist is torch._C.TensorBase.tolist
with hs.sanitize():
    assert watched() and torch.Tensor.tolist is not torch._C.TensorBase.tolist
    assert torch.arange(4.0).pin_memory().tolist() == [0, 1, 2, 3]
assert torch.Tensor.tolist is torch._C.TensorBase.tolist and "numpy" not in vars(torch.Tensor)
"""


def test_nothing_is_looked_at_without_a_sanitizer(program: Any) -> None:
    done = program(PROGRAM)
    assert done.returncode == 0, done.stderr


LATE = """
import halstream.torch.cuda_on_host
import torch

x = torch.arange(4.0, device="cuda")
y = x.to("cpu", non_blocking=True)
y.tolist()
"""


def test_a_sanitizer_that_began_before_the_redirection_sees_them(program: Any) -> None:
    done = program(LATE, env={**os.environ, "HALSTREAM_SANITIZE": "1"})
    assert "the host reads" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "waited", ["Stream.synchronize", "Event.synchronize", "torch.cuda.synchronize", "bound before", "item", ""]
)
def test_F22_a_wait_in_a_backward_pass_is_one_of_the_thread_that_called_it(torch: Any, waited: str) -> None:
    class Offload(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            on_host.copy_(gradient, non_blocking=True)
            waits[waited]()
            return gradient

    waits: dict[str, Callable[[], Any]] = {
        "Stream.synchronize": lambda: torch.cuda.current_stream().synchronize(),
        "Event.synchronize": lambda: torch.cuda.current_stream().record_event().synchronize(),
        "torch.cuda.synchronize": lambda: torch.cuda.synchronize(),
        "bound before": torch.cuda.synchronize,
        "item": lambda: x.sum().item(),
        "": lambda: None,
    }
    on_host = torch.empty(4, pin_memory=True)
    x = torch.ones(4, device="cuda", requires_grad=True)
    with hs.sanitize(on="collect") as report:
        Offload.apply(x).sum().backward()
        on_host.sum()
        hs.synchronize()
    assert bool(report.by_host_timing or list(report)) is not bool(waited), str(report)


HOOK = """
import halstream.torch.cuda_on_host
import torch

side, results = torch.cuda.Stream(), []


def hook(gradient):
    with torch.cuda.stream(side):
        results.append(scale * 2)


x = torch.ones(4, device="cuda", requires_grad=True)
x.register_hook(hook)
scale = torch.full((4,), 2.0, device="cuda")
torch.cuda.synchronize()  # before the pass
x.sum().backward()
side.synchronize()
print(results[0].tolist())
"""


@pytest.mark.parametrize("waits", [True, False])
def test_F22_what_the_caller_waited_for_is_before_the_pass(program: Any, waits: bool) -> None:
    source = HOOK if waits else HOOK.replace("torch.cuda.synchronize()  # before the pass", "")
    done = program(source, env={**os.environ, "HALSTREAM_SANITIZE": "1"})
    assert done.stdout == "[4.0, 4.0, 4.0, 4.0]\n", done.stderr
    assert ("`scale`" in done.stderr) is not waits, done.stderr
