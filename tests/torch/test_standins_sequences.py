"""The stand-ins for xformers, causal_conv1d and mamba_ssm, against loops and torch's own functions on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def gradients(torch: Any, out: Any, given: list[Any], grad: Any) -> list[Any]:
    return [one.cpu() for one in torch.autograd.grad(out, given, grad.to(out.device))]


def on_host(given: list[Any]) -> list[Any]:
    return [one.detach().cpu().requires_grad_() for one in given]


# -- xformers -----------------------------------------------------------------------


@pytest.fixture
def fmha(torch: Any) -> Any:
    """Return the module with masks, as a program imports it."""
    from xformers.ops import fmha  # type: ignore[import-not-found]

    return fmha


def seen(name: str, i: int, j: int, queries: int, keys: int) -> bool:
    """Return whether query i sees key j in a block, by the definitions of the masks."""
    corner = j - (i + keys - queries)
    return {
        "LowerTriangularMask": j <= i,
        "LowerTriangularFromBottomRightMask": corner <= 0,
        "LocalAttentionFromBottomRightMask": -2 <= corner <= 1,
        "LowerTriangularFromBottomRightLocalAttentionMask": -2 < corner <= 0,
        "BlockDiagonalMask": True,
        "BlockDiagonalCausalMask": j <= i,
        "BlockDiagonalCausalLocalAttentionMask": i - 2 < j <= i,
        "BlockDiagonalCausalFromBottomRightMask": corner <= 0,
        "BlockDiagonalCausalLocalAttentionFromBottomRightMask": -2 < corner <= 0,
    }[name]


def mask(fmha: Any, name: str, lengths_q: list[int], lengths_k: list[int]) -> Any:
    bias = fmha.attn_bias
    blocks = bias.BlockDiagonalMask.from_seqlens(lengths_q, lengths_k)
    return {
        "LowerTriangularMask": bias.LowerTriangularMask,
        "LowerTriangularFromBottomRightMask": bias.LowerTriangularFromBottomRightMask,
        "LocalAttentionFromBottomRightMask": lambda: bias.LocalAttentionFromBottomRightMask(2, 1),
        "LowerTriangularFromBottomRightLocalAttentionMask": (
            lambda: bias.LowerTriangularFromBottomRightMask().make_local_attention(2)
        ),
        "BlockDiagonalMask": lambda: blocks,
        "BlockDiagonalCausalMask": blocks.make_causal,
        "BlockDiagonalCausalLocalAttentionMask": lambda: blocks.make_causal().make_local_attention(2),
        "BlockDiagonalCausalFromBottomRightMask": blocks.make_causal_from_bottomright,
        "BlockDiagonalCausalLocalAttentionFromBottomRightMask": (
            lambda: blocks.make_causal_from_bottomright().make_local_attention(2)
        ),
    }[name]()


@pytest.mark.parametrize(
    "name",
    [
        "LowerTriangularMask",
        "LowerTriangularFromBottomRightMask",
        "LocalAttentionFromBottomRightMask",
        "LowerTriangularFromBottomRightLocalAttentionMask",
        "BlockDiagonalMask",
        "BlockDiagonalCausalMask",
        "BlockDiagonalCausalLocalAttentionMask",
        "BlockDiagonalCausalFromBottomRightMask",
        "BlockDiagonalCausalLocalAttentionFromBottomRightMask",
    ],
)
def test_masks_of_xformers(torch: Any, fmha: Any, name: str) -> None:
    lengths_q, lengths_k = ([3, 2], [4, 5]) if name.startswith("Block") else ([5], [9])
    bias = mask(fmha, name, lengths_q, lengths_k)
    allowed = torch.zeros(5, 9, dtype=torch.bool)
    q0 = k0 = 0
    for queries, keys in zip(lengths_q, lengths_k, strict=True):
        for i in range(queries):
            for j in range(keys):
                allowed[q0 + i, k0 + j] = seen(name, i, j, queries, keys)
        q0, k0 = q0 + queries, k0 + keys
    assert torch.equal(bias.materialize((5, 9)) == 0, allowed)
    q, k, v = (torch.randn(1, n, 2, 8, device="cuda", requires_grad=True) for n in (5, 9, 9))
    out = fmha.memory_efficient_attention(q, k, v, attn_bias=bias)
    host = on_host([q, k, v])
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(one.transpose(1, 2) for one in host), attn_mask=allowed
    ).transpose(1, 2)
    torch.testing.assert_close(out.cpu(), expected, **CLOSE)
    grad = torch.randn(out.shape)
    for one, wanted in zip(gradients(torch, out, [q, k, v], grad), gradients(torch, expected, host, grad), strict=True):
        torch.testing.assert_close(one, wanted, **CLOSE)


def test_layouts_biases_and_lists_of_tensors(torch: Any, fmha: Any) -> None:
    import xformers.ops as xops

    q, k, v = (torch.randn(2, 6, 4, 8, dtype=torch.float16, device="cuda") for _ in range(3))
    out = xops.memory_efficient_attention(q, k, v)
    assert torch.equal(xops.memory_efficient_attention_forward(q, k, v), out) and out.dtype == torch.float16
    groups = [one.view(2, 6, 2, 2, 8) for one in (q, k, v)]
    assert torch.equal(xops.memory_efficient_attention(*groups).view(out.shape), out)
    heads = [one.transpose(1, 2).reshape(8, 6, 8) for one in (q, k, v)]
    assert torch.equal(xops.memory_efficient_attention(*heads).view(2, 4, 6, 8).transpose(1, 2), out)
    added = torch.randn(2, 4, 6, 6, dtype=torch.float16, device="cuda")
    both = xops.LowerTriangularMask().add_bias(added)
    dense = torch.where(torch.ones(6, 6, device="cuda").tril() > 0, added, float("-inf"))
    torch.testing.assert_close(
        xops.memory_efficient_attention(q, k, v, attn_bias=both),
        xops.memory_efficient_attention(q, k, v, attn_bias=dense),
    )
    parts = [torch.randn(b, n, 4, 8, device="cuda") for b, n in ((2, 3), (1, 5))]
    bias, joined = fmha.BlockDiagonalMask.from_tensor_list(parts)
    found = bias.split(xops.memory_efficient_attention(joined, joined, joined, attn_bias=bias))
    for one, part in zip(found, parts, strict=True):
        torch.testing.assert_close(one, xops.memory_efficient_attention(part, part, part), **CLOSE)
    padded = fmha.attn_bias.BlockDiagonalCausalWithOffsetPaddedKeysMask.from_seqlens([1, 2], 4, [3, 2])
    q, kv = torch.randn(1, 3, 2, 8, device="cuda"), torch.randn(1, 8, 2, 8, device="cuda")
    out = xops.memory_efficient_attention(q, kv, kv, attn_bias=padded)
    torch.testing.assert_close(out[:, :1], xops.memory_efficient_attention(q[:, :1], kv[:, :3], kv[:, :3]), **CLOSE)
    with pytest.raises(NotImplementedError, match=r"attn_bias='causal'\); give a tensor or a mask"):
        xops.memory_efficient_attention(q, q, q, attn_bias="causal")


# -- convolutions -------------------------------------------------------------------


def convolved(torch: Any, x: Any, weight: Any, bias: Any, before: Any = None) -> Any:
    """Return torch's convolution over the past, on the CPU."""
    width = weight.shape[1]
    before = x.new_zeros(*x.shape[:2], width - 1) if before is None else before
    return torch.nn.functional.conv1d(torch.cat((before, x), 2), weight.unsqueeze(1), bias, groups=weight.shape[0])


def test_convolutions_are_torchs(torch: Any) -> None:
    from causal_conv1d import causal_conv1d_fn  # type: ignore[import-not-found]

    x, weight, bias = (torch.randn(*s, device="cuda", requires_grad=True) for s in ((2, 3, 7), (3, 4), (3,)))
    out = causal_conv1d_fn(x, weight, bias, activation="silu")
    host = on_host([x, weight, bias])
    expected = torch.nn.functional.silu(convolved(torch, *host))
    torch.testing.assert_close(out.cpu(), expected, **CLOSE)
    grad = torch.randn(out.shape)
    for one, wanted in zip(
        gradients(torch, out, [x, weight, bias], grad), gradients(torch, expected, host, grad), strict=True
    ):
        torch.testing.assert_close(one, wanted, **CLOSE)
    before = torch.randn(2, 3, 3, device="cuda")
    out, last = causal_conv1d_fn(x, weight, initial_states=before, return_final_states=True)
    torch.testing.assert_close(out.cpu(), convolved(torch, x.cpu(), weight.cpu(), None, before.cpu()), **CLOSE)
    assert torch.equal(last, x[:, :, -3:])
    numbers = torch.tensor([[0, 0, 0, 1, 1, 2, 2]] * 2, dtype=torch.int32, device="cuda")
    apart = [convolved(torch, one, weight.cpu(), None) for one in x.cpu().split([3, 2, 2], 2)]
    torch.testing.assert_close(causal_conv1d_fn(x, weight, seq_idx=numbers).cpu(), torch.cat(apart, 2), **CLOSE)
    with pytest.raises(NotImplementedError, match="activation must be None, silu, or swish"):
        causal_conv1d_fn(x, weight, activation="relu")


@pytest.mark.parametrize("ring", [False, True])
def test_updates_continue_a_convolution(torch: Any, ring: bool) -> None:
    from causal_conv1d import causal_conv1d_update

    x, weight, bias = (torch.randn(*s, device="cuda") for s in ((2, 3, 9), (3, 4), (3,)))
    whole = convolved(torch, x.cpu(), weight.cpu(), bias.cpu())
    states = torch.zeros(5, 3, 6, device="cuda")
    rows = torch.tensor([4, 1], dtype=torch.int32, device="cuda")
    place, found = 0, []
    for length in (1, 3, 1, 4):
        used = torch.full((2,), place, dtype=torch.int32, device="cuda") if ring else None
        new = x[:, :, place : place + length]
        given = new[:, :, 0] if length == 1 else new
        out = causal_conv1d_update(given, states, weight, bias, cache_seqlens=used, conv_state_indices=rows)
        found.append(out.view(2, 3, length))
        place += length
    torch.testing.assert_close(torch.cat(found, 2).cpu(), whole, **CLOSE)
    assert not states[[0, 2, 3]].any() and states[4].any()


def test_a_package_without_its_compiled_module_is_replaced(program: Any, tmp_path: Path) -> None:
    (tmp_path / "causal_conv1d").mkdir()
    (tmp_path / "causal_conv1d" / "__init__.py").write_text("from . import interface\n")
    (tmp_path / "causal_conv1d" / "interface.py").write_text("import causal_conv1d_cuda\n")
    done = program(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import halstream.torch.cuda_on_host, torch
        from causal_conv1d import causal_conv1d_fn
        print(causal_conv1d_fn(torch.ones(1, 1, 3, device="cuda"), torch.ones(1, 2, device="cuda")).tolist())
        """
    )
    assert done.stdout == "[[[1.0, 2.0, 2.0]]]\n", done.stderr
    assert "causal_conv1d cannot be loaded (No module named 'causal_conv1d_cuda')" in done.stderr


# -- scans ----------------------------------------------------------------------------


def scanned(torch: Any, u: Any, delta: Any, A: Any, B: Any, C: Any, D: Any, z: Any, bias: Any) -> Any:
    """Return the outputs of the recurrence, one channel at a time."""
    step = torch.nn.functional.softplus(delta + bias[:, None])
    rows = []
    for b in range(u.shape[0]):
        for d in range(u.shape[1]):
            state, outs = torch.zeros(A.shape[1]), []
            for t in range(u.shape[2]):
                group = d * B.shape[1] // u.shape[1]
                state = torch.exp(step[b, d, t] * A[d]) * state + step[b, d, t] * B[b, group, :, t] * u[b, d, t]
                outs.append((state * C[b, :, t]).sum() + D[d] * u[b, d, t])
            rows.append(torch.stack(outs))
    return torch.stack(rows).view(u.shape) * torch.nn.functional.silu(z)


def test_selective_scans_are_the_recurrence(torch: Any) -> None:
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn  # type: ignore[import-not-found]
    from mamba_ssm.ops.triton.selective_state_update import (  # type: ignore[import-not-found]
        selective_state_update,
    )

    shapes = ((2, 4, 5), (2, 4, 5), (4, 3), (2, 2, 3, 5), (2, 3, 5), (4,), (2, 4, 5), (4,))
    given = [torch.randn(*shape, device="cuda", requires_grad=True) for shape in shapes]
    out, last = selective_scan_fn(*given, delta_softplus=True, return_last_state=True)
    host = on_host(given)
    expected = scanned(torch, *host)
    torch.testing.assert_close(out.cpu(), expected, **CLOSE)
    grad = torch.randn(out.shape)
    for one, wanted in zip(gradients(torch, out, given, grad), gradients(torch, expected, host, grad), strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-3, atol=1e-4)
    u, delta, A, _, C, D, z, bias = [one.detach() for one in given]
    B = given[3].detach()[:, 0]  # one for all channels, as a step takes it
    out, last = selective_scan_fn(u, delta, A, B, C, D, z, bias, True, True)
    state = torch.zeros(2, 4, 3, device="cuda")
    for t in range(5):
        one = selective_state_update(
            state, u[:, :, t], delta[:, :, t], A, B[:, :, t], C[:, :, t], D, z[:, :, t], bias, dt_softplus=True
        )
        torch.testing.assert_close(one, out[:, :, t], **CLOSE)
    torch.testing.assert_close(state, last, **CLOSE)
    with pytest.raises(NotImplementedError, match="cu_seqlens"):
        selective_scan_fn(u, delta, A, B, C, cu_seqlens=torch.tensor([0, 5]))


def test_a_block_of_mamba_is_its_parts(torch: Any) -> None:
    from causal_conv1d import causal_conv1d_fn
    from mamba_ssm import mamba_inner_fn, selective_scan_fn

    shapes = ((2, 8, 5), (4, 1, 3), (4,), (2 + 6, 4), (4, 2), (6, 4), (4, 3), (4,), (4,))
    xz, conv, conv_bias, x_proj, delta_proj, out_proj, A, D, bias = (torch.randn(*s, device="cuda") for s in shapes)
    out = mamba_inner_fn(xz, conv, conv_bias, x_proj, delta_proj, out_proj, None, A, D=D, delta_bias=bias)
    x, z = xz.chunk(2, 1)
    x = causal_conv1d_fn(x, conv[:, 0], conv_bias, activation="silu")
    parts = torch.einsum("bcl,pc->bpl", x, x_proj)
    delta = torch.einsum("brl,cr->bcl", parts[:, :2], delta_proj)
    scan = selective_scan_fn(x, delta, A, parts[:, 2:5], parts[:, 5:], D, z, bias, True)
    torch.testing.assert_close(out, torch.einsum("bcl,oc->blo", scan, out_proj), **CLOSE)
