"""Kernels that write into the results' memory, and what the other kernels allocate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[[Any, Any], Any]


def _numbers(torch: Any, layout: str, dtype: str) -> Any:
    x = torch.randn(6, 5, 4, generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    return {
        "contiguous": x, "transposed": x.transpose(0, 2), "strided": x[::2, 1:, :3], "empty": x[:0],
        "one": x[0, 0, 0], "expanded": x[0].expand(7, 5, 4),
    }[layout]  # fmt: skip


LAYOUTS = ("contiguous", "transposed", "strided", "empty", "one", "expanded")
DTYPES = ("float32", "float64", "bfloat16", "float16")
CALLS: dict[str, Call] = {
    "relu": lambda torch, x: torch.relu(x),
    "clone": lambda torch, x: x.clone(),
    "clone to channels last": lambda torch, x: x.reshape(1, *x.shape[-2:], -1).clone(memory_format=torch.channels_last),
    "foreach_sqrt": lambda torch, x: torch._foreach_sqrt([x.abs(), x.abs().contiguous()])[1],
    "foreach_add": lambda torch, x: torch._foreach_add([x], [x * 2], alpha=3)[0],
    "dropout of nothing": lambda torch, x: torch.native_dropout(x, 0.0, True)[0],
    "dropout of all": lambda torch, x: torch.native_dropout(x, 1.0, True)[0],
    "dropout in use": lambda torch, x: torch.native_dropout(x, 0.5, False)[0],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_F32_results_and_layouts_are_the_cpus(torch: Any, name: str, layout: str, dtype: str) -> None:
    x = _numbers(torch, layout, dtype)
    if name == "clone to channels last" and x.dim() < 3:
        pytest.skip("a channel needs three dimensions")
    x_there = x.cuda()
    x = x_there.cpu()  # the copy of a part is dense
    here, there = CALLS[name](torch, x), CALLS[name](torch, x_there)
    assert (there.device.type, there.dtype, there.shape, there.stride()) == (
        "cuda",
        here.dtype,
        here.shape,
        here.stride(),
    )
    assert torch.equal(there.cpu(), here)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_F32_dropout_scales_what_its_mask_keeps_and_so_does_its_backward(torch: Any, layout: str, dtype: str) -> None:
    x = _numbers(torch, layout, dtype)
    result, mask = torch.native_dropout(x.cuda(), 0.25, True)
    mask = mask.cpu()
    assert x.dim() == 0 or x.numel() == 0 or 0 < int(mask.sum()) < mask.numel()
    assert torch.equal(result.cpu(), x.mul(mask).mul_(1 / 0.75))
    back = functools.partial(torch.ops.aten.native_dropout_backward, scale=1 / 0.75)
    assert torch.equal(back(x.cuda(), mask.cuda()).cpu(), back(x, mask))


def test_F32_dropout_of_large_tensors_draws_the_same_whatever_the_schedule(torch: Any) -> None:
    x = torch.randn(300, 400)

    def drop() -> Any:
        torch.cuda.manual_seed(5)
        return torch.nn.functional.dropout(x.cuda(), 0.1).cpu()

    first = drop()
    assert torch.equal(drop(), first)
    assert torch.equal(first[first != 0], (x * torch.tensor(1 / 0.9))[first != 0])


@pytest.mark.parametrize("index", [0, 2, -1, slice(1, 3), slice(None, None, 2), slice(-2, None)], ids=str)
def test_F32_gradients_of_parts_are_the_cpus(torch: Any, index: Any) -> None:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))

    def gradient(x: Any) -> Any:
        x = x.clone().requires_grad_()
        (x[index] * x[index]).sum().backward()
        return x.grad

    assert torch.equal(gradient(x.cuda()).cpu(), gradient(x))


def test_F32_what_kernels_allocate_is_kept_for_the_next_ones(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import resource, torch

        def faults():
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

        x = torch.zeros(40 << 18, device="cuda")  # 40 MiB: the C library never keeps such a block
        for _ in range(3):
            y = x.roll(1)  # its kernel returns a new tensor
        torch.cuda.synchronize()
        before = faults()
        for _ in range(6):
            y = x.roll(1)
        torch.cuda.synchronize()
        assert faults() - before < 2 * 10240, faults() - before  # 10,240 pages each time otherwise
        """
    )
    assert done.returncode == 0, done.stderr


def test_F32_of_what_kernels_allocated_no_more_than_64_mib_are_kept(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import torch

        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20

        x = torch.zeros(16, device="cuda").roll(1)
        before = resident()
        for mib in (160, 48, 50, 52):
            x = torch.zeros(mib << 18, device="cuda")
            y = x.roll(1)
            torch.cuda.synchronize()
            del x, y
        torch.cuda.empty_cache()
        assert resident() - before < 100, resident() - before
        """
    )
    assert done.returncode == 0, done.stderr
