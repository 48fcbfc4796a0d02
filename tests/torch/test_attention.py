"""Torch's fused attention on the device: results, gradients and sizes, beside plain attention on the CPU."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
import ranks

BACKENDS = ["FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"]


def _inputs(torch: Any, type_name: str, *, groups: int = 1, queries: int = 6, keys: int = 6) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    sizes = [(2, 4, queries, 8), (2, 4 // groups, keys, 8), (2, 4 // groups, keys, 8)]
    return [torch.randn(size, generator=generator).to(getattr(torch, type_name)) for size in sizes]


def _run(torch: Any, tensors: list[Any], device: str, backend: str, mask: Any = None, **options: Any) -> list[Any]:
    """Return the result and the gradients of queries, keys, values and, of a mask that has one, of the mask."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    given = [tensor.to(device).detach().requires_grad_() for tensor in tensors]
    there = None if mask is None else mask.to(device).detach().requires_grad_(mask.requires_grad)
    with sdpa_kernel([getattr(SDPBackend, backend)]):
        result = torch.nn.functional.scaled_dot_product_attention(*given, attn_mask=there, **options)
    result.float().mul(torch.arange(8.0, device=device)).sum().backward()
    gradients = [one.grad for one in given] + ([there.grad] if there is not None and there.requires_grad else [])
    return [one.detach().cpu().float() for one in [result, *gradients]]


def _tolerance(type_name: str) -> dict[str, float]:
    return {"rtol": 1e-4, "atol": 1e-4} if type_name == "float32" else {"rtol": 0.05, "atol": 0.15}


CASES = [
    (backend, type_name, causal, groups, scale)
    for backend, type_name, causal, groups, scale in itertools.product(
        BACKENDS, ["float32", "float16", "bfloat16"], [False, True], [1, 2], [None, 0.3]
    )
    if (type_name != "float32" or backend == "EFFICIENT_ATTENTION")
    and (groups == 1 or backend != "EFFICIENT_ATTENTION")
]


@pytest.mark.parametrize(("backend", "type_name", "causal", "groups", "scale"), CASES)
def test_fused_attention_is_plain_attention(
    torch: Any, backend: str, type_name: str, causal: bool, groups: int, scale: float | None
) -> None:
    tensors = _inputs(torch, type_name, groups=groups)
    options = {"is_causal": causal, "enable_gqa": groups > 1, "scale": scale}
    wanted = _run(torch, [tensor.float() for tensor in tensors], "cpu", "MATH", **options)
    torch.testing.assert_close(_run(torch, tensors, "cuda", backend, **options), wanted, **_tolerance(type_name))


@pytest.mark.parametrize("kind", ["numbers", "bools"])
@pytest.mark.parametrize("type_name", ["float32", "bfloat16"])
def test_efficient_attention_with_a_mask(torch: Any, type_name: str, kind: str) -> None:
    tensors = _inputs(torch, type_name, keys=7)
    mask = torch.randn(2, 1, 6, 7, generator=torch.Generator().manual_seed(4))
    mask = mask.gt(-0.5) if kind == "bools" else mask.to(tensors[0].dtype).requires_grad_()
    plain = mask if kind == "bools" else mask.detach().float().requires_grad_()
    wanted = _run(torch, [tensor.float() for tensor in tensors], "cpu", "MATH", plain)
    found = _run(torch, tensors, "cuda", "EFFICIENT_ATTENTION", mask)
    torch.testing.assert_close(found, wanted, **_tolerance(type_name))


def test_results_beside_the_first_have_the_sizes_of_cuda(torch: Any) -> None:
    q = torch.randn(1, 2, 6, 8, device="cuda", dtype=torch.float16)
    out, sums, _, _, max_q, max_k, seed, offset, mask = torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)
    assert (out.shape, sums.shape, max_q, max_k) == (q.shape, (1, 2, 6), 6, 6)
    assert (seed.shape, seed.dtype, offset.shape, mask.numel()) == ((2,), torch.uint64, (), 0)
    scores = (q.float() @ q.float().transpose(2, 3)) / 8**0.5
    torch.testing.assert_close(sums, scores.logsumexp(-1), rtol=1e-3, atol=1e-3)
    out, sums, seed, _ = torch.ops.aten._scaled_dot_product_efficient_attention(q, q, q, None, True)
    assert (out.stride(), sums.shape, seed.dtype) == ((96, 8, 16, 1), (1, 2, 32), torch.int64)
    assert torch.ops.aten._scaled_dot_product_efficient_attention(q, q, q, None, False)[1].shape == (1, 2, 0)
    out, sums, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(q, q, q, None, True)
    assert (out.shape, sums.shape) == (q.shape, (1, 2, 6, 1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_backend_does_not_take_on_cuda_is_refused(torch: Any, backend: str) -> None:
    tensors = _inputs(torch, "float64")
    with pytest.raises(RuntimeError, match="No available kernel"):
        _run(torch, tensors, "cuda", backend)


def test_torch_tells_which_backends_take_tensors(torch: Any) -> None:
    from torch.backends.cuda import (
        SDPAParams,
        can_use_cudnn_attention,
        can_use_efficient_attention,
        can_use_flash_attention,
    )  # fmt: skip

    ask = (can_use_flash_attention, can_use_efficient_attention, can_use_cudnn_attention)
    half, single = (torch.ones(1, 2, 6, 8, device="cuda", dtype=dtype) for dtype in (torch.float16, torch.float32))
    mask = torch.ones(6, 6, device="cuda", dtype=torch.float16)
    for q, given, wanted in (
        (half, None, [True] * 3),
        (single, None, [False, True, False]),
        (half, mask, [False, True, True]),
    ):
        assert [can(SDPAParams(q, q, q, given, 0.0, False, False)) for can in ask] == wanted


def test_an_argument_without_a_counterpart_is_refused_by_name(torch: Any) -> None:
    q = torch.ones(1, 6, 2, 8, device="cuda", dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="attention with return_debug_mask is not supported") as refused:
        torch.ops.aten._flash_attention_forward(q, q, q, None, None, 6, 6, 0.0, False, True)
    assert "\nexplain: halstream explain unsupported-operator" in str(refused.value)


def test_the_backward_pass_drops_what_the_forward_pass_dropped(torch: Any) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.zeros(1, 2, 32, 8, device="cuda", dtype=torch.bfloat16)  # each weight is 1/32, or dropped
    v = torch.randn(1, 2, 32, 8, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    for backend in BACKENDS:
        v.grad = None
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            result = torch.nn.functional.scaled_dot_product_attention(q, q, v, dropout_p=0.5)
        # The result is linear in the values, so that its product with them is that of their gradient with them.
        result.float().sum().backward()
        ones = (v.detach().float() * v.grad.float()).sum()
        torch.testing.assert_close(ones, result.detach().float().sum(), rtol=0.05, atol=1.0)
        assert v.grad[0, :, :, 0].unique().numel() > 2, backend


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_sequences_of_several_lengths(torch: Any, causal: bool) -> None:
    lengths, begins = [3, 5], torch.tensor([0, 3, 8], dtype=torch.int32, device="cuda")
    given = [torch.randn(8, 2, 4, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3)]
    out, sums, rng, unused, _ = torch.ops.aten._flash_attention_forward(
        *given, begins, begins, 5, 5, 0.0, causal, False
    )
    wanted = torch.cat([
        torch.nn.functional.scaled_dot_product_attention(
            *(part.transpose(0, 1).unsqueeze(0) for part in parts), is_causal=causal
        )[0].transpose(0, 1)
        for parts in zip(*(one.split(lengths) for one in given), strict=True)
    ])  # fmt: skip
    torch.testing.assert_close(out, wanted.detach(), rtol=0.02, atol=0.02)
    assert sums.shape == (2, 8)
    gradient = torch.randn_like(out)
    wanted.backward(gradient)
    found = torch.ops.aten._flash_attention_backward(
        gradient, *(one.detach() for one in given), out, sums, begins, begins, 5, 5, 0.0, causal, rng, unused
    )
    for one, other in zip(found, given, strict=True):
        torch.testing.assert_close(one, other.grad, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("kind", [1, 2])
def test_both_causal_masks_of_efficient_attention(torch: Any, kind: int) -> None:
    q, k = torch.randn(1, 3, 2, 8, device="cuda"), torch.randn(1, 5, 2, 8, device="cuda")
    out, *_ = torch.ops.aten._efficient_attention_forward(q, k, k, None, None, None, None, None, 0.0, kind)
    seen = torch.ones(3, 5, dtype=torch.bool, device="cuda").tril(0 if kind == 1 else 2)
    plain = torch.nn.functional.scaled_dot_product_attention
    wanted = plain(*(one.transpose(1, 2) for one in (q, k, k)), attn_mask=seen).transpose(1, 2)
    torch.testing.assert_close(out, wanted)


def test_a_missing_wait_before_fused_attention_is_reported(torch: Any) -> None:
    q = torch.randn(1, 2, 6, 8, device="cuda", dtype=torch.float16)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        q.mul_(2)
        with torch.cuda.stream(side):
            torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)
        torch.cuda.synchronize()
    assert report.races
    assert "_scaled_dot_product_flash_attention" in str(report)


CONTEXT_PARALLEL = """
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import _cp_options, context_parallel_unshard
start("nccl")
mesh = init_device_mesh("cuda", (2,))
kinds = ((SDPBackend.FLASH_ATTENTION, torch.bfloat16, 0.1), (SDPBackend.EFFICIENT_ATTENTION, torch.float32, 1e-4),
         (SDPBackend.CUDNN_ATTENTION, torch.bfloat16, 0.1))
for backend, dtype, limit in kinds:
    for causal in (True, False):
        _cp_options.enable_load_balance = causal
        generator = torch.Generator().manual_seed(3)
        whole = [torch.randn(1, 2, 128, 8, generator=generator).to(dtype).cuda().requires_grad_() for _ in range(3)]
        wanted = F.scaled_dot_product_attention(*whole, is_causal=causal)
        wanted.float().square().sum().backward()
        parts = [one.detach().clone() for one in whole]
        with sdpa_kernel([backend]), context_parallel(mesh, buffers=parts, buffer_seq_dims=(2, 2, 2),
                                                      no_restore_buffers=set(parts)):
            for one in parts:
                one.requires_grad_()
            out = F.scaled_dot_product_attention(*parts, is_causal=causal)
            out.float().square().sum().backward()
            found = context_parallel_unshard(mesh, [out.detach()] + [one.grad for one in parts], [2] * 4)
        for one, other in zip(found, [wanted.detach()] + [one.grad for one in whole], strict=True):
            assert (one.float() - other.float()).abs().max() < limit, (backend, causal, one, other)
dist.destroy_process_group()
"""


def test_attention_over_two_devices_is_that_of_one(tmp_path: Path) -> None:
    ranks.run(tmp_path, CONTEXT_PARALLEL)
