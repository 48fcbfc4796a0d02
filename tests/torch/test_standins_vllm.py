"""The stand-ins for vllm._C, vllm._moe_C and sgl_kernel, against loops over tokens."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import halstream.torch as ht
import pytest


@pytest.fixture
def ops(torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return torch.ops after the import of the compiled modules of a vllm whose Python part alone is there."""
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("vllm._C", "vllm._moe_C"):
        importlib.import_module(name)
    yield torch.ops
    for name in [one for one in sys.modules if one.partition(".")[0] == "vllm"]:
        del sys.modules[name]


def test_only_the_compiled_modules_are_served(torch: Any) -> None:
    with pytest.raises(ModuleNotFoundError, match="vllm"):
        import vllm  # noqa: F401


@pytest.mark.parametrize("name", ["silu_and_mul", "mul_and_silu", "gelu_and_mul", "gelu_tanh_and_mul"])
def test_gated_activations(torch: Any, ops: Any, name: str) -> None:
    x = torch.randn(3, 16, device="cuda")
    out = torch.empty(3, 8, device="cuda")
    getattr(ops._C, name)(out, x)
    a, b = x.cpu().chunk(2, -1)
    F = torch.nn.functional
    expected = {
        "silu_and_mul": lambda: F.silu(a) * b,
        "mul_and_silu": lambda: a * F.silu(b),
        "gelu_and_mul": lambda: F.gelu(a) * b,
        "gelu_tanh_and_mul": lambda: F.gelu(a, approximate="tanh") * b,
    }[name]()
    torch.testing.assert_close(out.cpu(), expected)


def test_other_activations(torch: Any, ops: Any) -> None:
    x = torch.randn(3, 16, device="cuda")
    out = torch.empty_like(x)
    for name in ("gelu_new", "gelu_fast"):
        out.fill_(float("nan"))
        getattr(ops._C, name)(out, x)
        torch.testing.assert_close(out, torch.nn.functional.gelu(x, approximate="tanh"))
    ops._C.gelu_quick(out, x)
    torch.testing.assert_close(out, x * torch.sigmoid(1.702 * x))
    half = torch.empty(3, 8, device="cuda")
    ops._C.fatrelu_and_mul(half, x, 0.3)
    torch.testing.assert_close(half, torch.where(x[:, :8] > 0.3, x[:, :8], 0) * x[:, 8:])
    ops._C.swigluoai_and_mul(half, x)
    gate, up = x[:, ::2].clamp(max=7), x[:, 1::2].clamp(-7, 7)
    torch.testing.assert_close(half, (up + 1) * gate * torch.sigmoid(1.702 * gate))


def test_norms(torch: Any, ops: Any) -> None:
    x, residual, weight = torch.randn(3, 8, device="cuda"), torch.randn(3, 8, device="cuda"), torch.rand(8).cuda()
    out = torch.empty_like(x)
    ops._C.rms_norm(out, x, weight, 1e-5)
    torch.testing.assert_close(out, torch.nn.functional.rms_norm(x, (8,), weight, 1e-5))
    added = x + residual
    ops._C.fused_add_rms_norm(x, residual, weight, 1e-5)
    torch.testing.assert_close(residual, added)
    torch.testing.assert_close(x, torch.nn.functional.rms_norm(added, (8,), weight, 1e-5))


@pytest.mark.parametrize("is_neox", [False, True])
def test_rotations_in_place(torch: Any, ops: Any, is_neox: bool) -> None:
    positions = torch.tensor([4, 0, 2], device="cuda")
    angles = torch.rand(6, 4)
    cache = torch.cat((angles.cos(), angles.sin()), -1).cuda()
    qkv = torch.randn(3, 4 * 12, device="cuda")  # two heads of queries, one of keys and one of values
    before = qkv.cpu()
    query, key = qkv[:, :24], qkv[:, 24:36]
    ops._C.rotary_embedding(positions, query, key, 12, cache, is_neox)
    expected = before.clone()
    for t, place in enumerate((4, 0, 2)):
        for h in range(3):
            for i in range(4):
                a, b = (i, i + 4) if is_neox else (2 * i, 2 * i + 1)
                x, y = before[t, 12 * h + a], before[t, 12 * h + b]
                cos, sin = angles[place, i].cos(), angles[place, i].sin()
                expected[t, 12 * h + a], expected[t, 12 * h + b] = x * cos - y * sin, y * cos + x * sin
    torch.testing.assert_close(qkv.cpu(), expected)
    ops._C.rotary_embedding(positions, query, None, 12, cache, is_neox, 0, True)
    torch.testing.assert_close(query.cpu(), before[:, :24])


SLOTS = [9, -1, 2, 14]  # of four blocks of four tokens; -1 is padding


def caches(torch: Any, dtype: Any) -> tuple[Any, Any]:
    """Return caches for two heads of 8 elements, as paged attention has them."""
    x = 16 // dtype.itemsize
    keys = torch.randn(4, 2, 8 // min(x, 8), 4, min(x, 8)).to(dtype).cuda()
    return keys, torch.randn(4, 2, 8, 4).to(dtype).cuda()


def test_writes_to_caches_leave_padding_out(torch: Any, ops: Any) -> None:
    key, value = (torch.randn(4, 2, 8, device="cuda") for _ in range(2))
    slots, one = torch.tensor(SLOTS, device="cuda"), torch.ones((), device="cuda")
    key_cache, value_cache = caches(torch, torch.float32)
    expected = key_cache.cpu(), value_cache.cpu()
    ops._C_cache_ops.reshape_and_cache(key, value, key_cache, value_cache, slots, "auto", one, one)
    flat = [torch.randn(4, 4, 2, 8, device="cuda") for _ in range(2)]
    flat_expected = [cache.cpu() for cache in flat]
    ops._C_cache_ops.reshape_and_cache_flash(key, value, *flat, slots, "auto", one, one)
    for token, slot in enumerate(SLOTS):
        if slot >= 0:
            expected[0][slot // 4, :, :, slot % 4] = key[token].cpu().view(2, 2, 4)
            expected[1][slot // 4, :, :, slot % 4] = value[token].cpu()
            flat_expected[0][slot // 4, slot % 4], flat_expected[1][slot // 4, slot % 4] = (
                key[token].cpu(),
                value[token].cpu(),
            )
    assert torch.equal(key_cache.cpu(), expected[0]) and torch.equal(value_cache.cpu(), expected[1])
    for cache, wanted in zip(flat, flat_expected, strict=True):
        assert torch.equal(cache.cpu(), wanted)
    none = torch.full((4,), -1, device="cuda")
    ops._C_cache_ops.reshape_and_cache_flash(key + 1, value, *flat, none, "auto", one, one)
    assert torch.equal(flat[0].cpu(), flat_expected[0])
    latent = torch.randn(4, 4, 10, device="cuda")
    ops._C_cache_ops.concat_and_cache_mla(key[:, 0], key[:, 1, :2], latent, slots, "auto", one)
    assert torch.equal(latent[2, 1], torch.cat((key[0, 0], key[0, 1, :2])))


def test_caches_of_eight_bits(torch: Any, ops: Any) -> None:
    key, value = (torch.randn(4, 2, 8, device="cuda") for _ in range(2))
    slots = torch.arange(4, device="cuda")
    scale, other = (torch.tensor(one, device="cuda") for one in (0.25, 0.5))
    cache = torch.zeros(2, 4, 4, 2, 8, dtype=torch.uint8, device="cuda")
    ops._C_cache_ops.reshape_and_cache_flash(key, value, *cache, slots, "fp8", scale, other)
    for kept, of, expected in ((cache[0], 0.25, key), (cache[1], 0.5, value)):
        back = torch.full((4, 4, 2, 8), float("nan"), device="cuda")
        ops._C_cache_ops.convert_fp8(back, kept, of, "fp8")
        torch.testing.assert_close(back[0], expected, rtol=0.1, atol=0.01)
    with pytest.raises(
        NotImplementedError, match=r"reshape_and_cache_flash\(kv_cache_dtype='nvfp4'\).*give one of auto"
    ):
        ops._C_cache_ops.reshape_and_cache_flash(key, value, *cache, slots, "nvfp4", scale, scale)


def test_blocks_are_copied_and_swapped(torch: Any, ops: Any) -> None:
    key_cache, value_cache = caches(torch, torch.float32)
    before, values = key_cache.clone(), value_cache.clone()
    mapping = torch.tensor([[0, 2], [1, 3]], device="cuda")
    ops._C_cache_ops.copy_blocks([key_cache], [value_cache], mapping)
    assert torch.equal(key_cache[2:], before[:2]) and torch.equal(value_cache[2:], values[:2])
    host = torch.zeros(before.shape).pin_memory()
    ops._C_cache_ops.swap_blocks(before, host, torch.tensor([[3, 1]]))
    torch.cuda.synchronize()
    assert torch.equal(host[1], before[3].cpu()) and not host[0].any()
    ops._C_cache_ops.swap_blocks(host, before, before[0].nbytes, torch.tensor([[0, 3]]))
    assert not before[3].any()


def test_sequences_are_gathered_from_their_blocks(torch: Any, ops: Any) -> None:
    cache = torch.randn(4, 4, 6, device="cuda")
    table = torch.tensor([[2, 0], [3, 1]], dtype=torch.int32, device="cuda")
    starts = torch.tensor([0, 5, 7], dtype=torch.int32, device="cuda")
    out = torch.zeros(9, 6, device="cuda")
    ops._C_cache_ops.cp_gather_cache(cache, out, table, starts, 2, None)
    assert torch.equal(out, torch.cat((cache[2], cache[0, :1], cache[3, :2], out.new_zeros(2, 6))))
    begin, one = torch.tensor([1, 3], dtype=torch.int32, device="cuda"), torch.ones((), device="cuda")
    whose = torch.tensor([0, 0, 0, 0, 0, 1, 1], dtype=torch.int32, device="cuda")
    ops._C_cache_ops.gather_and_maybe_dequant_cache(cache, out, table, starts, whose, 7, "auto", one, begin)
    assert torch.equal(out[:7], torch.cat((cache[2, 1:], cache[0, :2], cache[3, 3:], cache[1, :1])))
    again = torch.zeros(7, 6, device="cuda")
    ops._C_cache_ops.gather_and_maybe_dequant_cache(cache, again, table, starts, 2, "auto", one, begin)
    assert torch.equal(again, out[:7])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("alibi", [False, True])
def test_paged_attention(torch: Any, ops: Any, version: int, alibi: bool) -> None:
    key_cache, value_cache = caches(torch, torch.float32)
    query = torch.randn(2, 4, 8, device="cuda")
    table = torch.tensor([[2, 0], [3, -1]], dtype=torch.int32, device="cuda")
    lengths = torch.tensor([6, 3], dtype=torch.int32, device="cuda")
    slopes = torch.rand(4, device="cuda") if alibi else None
    out, one = torch.empty_like(query), torch.ones((), device="cuda")
    rest = (query, key_cache, value_cache, 2, 0.3, table, lengths, 4, 6, slopes, "auto", one, one, 0, 0, 0, 64, 0)
    if version == 1:
        ops._C.paged_attention_v1(out, *rest)
    else:
        sums, logits = (torch.empty(2, 4, 1, device="cuda") for _ in range(2))
        ops._C.paged_attention_v2(out, sums, logits, torch.empty(2, 4, 1, 8, device="cuda"), *rest)
    for i, (blocks, length) in enumerate((([2, 0], 6), ([3], 3))):
        keys = torch.cat([key_cache[b].permute(2, 0, 1, 3).reshape(4, 2, 8) for b in blocks])[:length].cpu()
        values = torch.cat([value_cache[b].permute(2, 0, 1) for b in blocks])[:length].cpu()
        for h in range(4):
            scores = 0.3 * keys[:, h // 2] @ query[i, h].cpu()
            if slopes is not None:
                scores = scores + slopes[h].cpu() * (torch.arange(length) - length + 1)
            torch.testing.assert_close(out[i, h].cpu(), torch.softmax(scores, 0) @ values[:, h // 2])
    with pytest.raises(NotImplementedError, match="blocksparse_vert_stride=8"):
        ops._C.paged_attention_v1(out, *rest[:-3], 8, 64, 0)


def test_parts_of_attention_are_merged(torch: Any, ops: Any) -> None:
    from halstream.torch._standins._attention import Rule, attend

    q, k, v = (torch.randn(1, n, 2, 8, device="cuda") for n in (3, 6, 6))
    whole, lse, _ = attend(q, k, v, Rule(scale=0.4))
    parts = [attend(q, k[:, part], v[:, part], Rule(scale=0.4)) for part in (slice(4), slice(4, 6))]
    out, sums = torch.empty_like(whole[0]), torch.empty_like(lse[0])
    prefix, suffix = ((out_[0], lse_[0]) for out_, lse_, _ in parts)
    ops._C.merge_attn_states(out, sums, *prefix, *suffix)
    torch.testing.assert_close(out, whole[0])
    torch.testing.assert_close(sums, lse[0])
    ops._C.merge_attn_states(out, None, *prefix, *suffix, 1)
    torch.testing.assert_close(out[1:], suffix[0][1:])


def test_penalties_change_logits_that_were_there(torch: Any, ops: Any) -> None:
    logits = torch.tensor([[2.0, -2.0, 2.0]], device="cuda")
    seen, none = torch.tensor([[True, True, False]], device="cuda"), torch.zeros(1, 3, dtype=torch.bool, device="cuda")
    ops._C.apply_repetition_penalties_(logits, seen, none, torch.tensor([2.0], device="cuda"))
    assert logits.tolist() == [[1, -4, 2]]


def test_experts_are_chosen(torch: Any, ops: Any) -> None:
    gating = torch.tensor([[1.0, 3.0, 2.0, 3.0], [0.0, 0.0, 5.0, 1.0]], device="cuda")
    weights = torch.empty(2, 2, device="cuda")
    indices, rows = (torch.empty(2, 2, dtype=torch.int32, device="cuda") for _ in range(2))
    ops._moe_C.topk_softmax(weights, indices, rows, gating)
    probabilities = gating.softmax(-1)
    assert indices.tolist() == [[1, 3], [2, 3]] and rows.tolist() == [[0, 2], [1, 3]]
    torch.testing.assert_close(weights, probabilities.gather(1, indices.long()))
    ops._moe_C.topk_softmax(weights, indices, rows, gating, True)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, device="cuda"))
    parts = torch.randn(2, 3, 8, device="cuda")
    out = torch.empty(2, 8, device="cuda")
    ops._moe_C.moe_sum(parts, out)
    torch.testing.assert_close(out, parts.sum(1))
    with pytest.raises(NotImplementedError, match="is_padding"):
        ops._moe_C.topk_softmax(weights, indices, rows, gating, False, None, indices)


def test_tokens_are_aligned_to_blocks_of_their_experts(torch: Any, ops: Any) -> None:
    chosen = torch.tensor([[2, 0], [2, 3], [2, -1]], dtype=torch.int32, device="cuda")
    tokens = torch.empty(6 + 4, dtype=torch.int32, device="cuda")
    experts, total = torch.empty(5, dtype=torch.int32, device="cuda"), torch.empty(1, dtype=torch.int32, device="cuda")
    ops._moe_C.moe_align_block_size(chosen, 4, 2, tokens, experts, total)
    assert total.tolist() == [8]
    assert tokens.tolist() == [1, 6, 0, 2, 4, 6, 3, 6, 6, 6] and experts.tolist()[:4] == [0, 2, 2, 3]


def test_nothing_waits_for_the_device(torch: Any, ops: Any, held: Any) -> None:
    key = torch.randn(4, 2, 8, device="cuda")
    slots, one = torch.tensor(SLOTS, device="cuda"), torch.ones((), device="cuda")
    key_cache, value_cache = caches(torch, torch.float32)
    table, lengths = torch.zeros(4, 1, dtype=torch.int32).cuda(), torch.ones(4, dtype=torch.int32).cuda()
    flat, starts = torch.randn(2, 4, 4, 2, 8, device="cuda"), torch.tensor([0, 2, 4], device="cuda")
    chosen, tokens = torch.tensor([[2, 0]], device="cuda"), torch.empty(10, dtype=torch.int32, device="cuda")
    experts, total = torch.empty(5, dtype=torch.int32, device="cuda"), torch.empty(1, dtype=torch.int32, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    gate = held(side)
    with torch.cuda.stream(side):
        ops._C_cache_ops.reshape_and_cache(key, key, key_cache, value_cache, slots, "auto", one, one)
        ops._C_cache_ops.reshape_and_cache_flash(key, key, *flat, slots, "auto", one, one)
        ops._C_cache_ops.copy_blocks([key_cache], [value_cache], torch.empty(0, 2, dtype=torch.long, device="cuda"))
        ops._C_cache_ops.cp_gather_cache(flat[0], key, table, starts, 2, None)
        ops._C.paged_attention_v1(
            key, key, key_cache, value_cache, 2, 0.3, table, lengths, 4, 4, None, "auto", one, one, 0, 0, 0, 64, 0
        )
        ops._C.rotary_embedding(slots.clamp(min=0), key.view(4, 16), None, 8, flat[0].view(-1, 8), True)
        ops._moe_C.moe_align_block_size(chosen, 4, 2, tokens, experts, total)
    assert not side.query()
    gate.open()
    side.synchronize()


def test_the_schemas_name_what_is_written(torch: Any, ops: Any) -> None:
    for operator, written in (
        (ops._C.rotary_embedding, {"query", "key"}),
        (ops._C.fused_add_rms_norm, {"input", "residual"}),
        (ops._C_cache_ops.reshape_and_cache, {"key_cache", "value_cache"}),
        (ops._moe_C.topk_softmax, {"topk_weights", "topk_indices", "token_expert_indices"}),
    ):
        schema = operator.default._schema
        assert {one.name for one in schema.arguments if one.alias_info and one.alias_info.is_write} == written
    x = torch.randn(2, 16, device="cuda")
    compiled = torch.compile(lambda out: ops._C.silu_and_mul(out, x), backend="aot_eager", fullgraph=True)
    out, wanted = torch.empty(2, 8, device="cuda"), torch.empty(2, 8, device="cuda")
    compiled(out)
    ops._C.silu_and_mul(wanted, x)
    assert torch.equal(out, wanted)


def test_a_missing_wait_before_an_operator_is_reported(torch: Any, ops: Any) -> None:
    x, out, side = torch.zeros(4, 16, device="cuda"), torch.empty(4, 8, device="cuda"), torch.cuda.Stream()
    for waits in (True, False):
        torch.cuda.synchronize()
        with hs.sanitize(on="collect") as report:
            x.fill_(1)
            if waits:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                ops._C.silu_and_mul(out, x)
            torch.cuda.synchronize()
        assert bool(report.races) is not waits, str(report)


def test_an_operator_of_another_library_is_refused(torch: Any) -> None:
    from halstream.torch._standins import _operators

    made = torch.library.Library("halstream_tests_taken", "DEF")
    made.define("f(Tensor x) -> ()")
    made.impl("f", lambda x: None, "CUDA")
    text = "another library has defined the operator halstream_tests_taken::f.*HALSTREAM_TORCH_STANDINS=-vllm"
    with pytest.raises(ht.RedirectError, match=text):
        _operators.register("vllm", "halstream_tests_taken", {"f(Tensor x) -> ()": lambda x: None})
    made.define("g(Tensor x, float by) -> Tensor")
    with pytest.raises(
        ht.RedirectError, match=r"g\(x, by\), and halstream's stand-in for vllm has g\(x\), of another version"
    ):
        _operators.register("vllm", "halstream_tests_taken", {"g(Tensor x) -> Tensor": lambda x: x})
    _operators.register("vllm", "halstream_tests_taken", {"g(Tensor x, float by) -> Tensor": lambda x, by: x * by})
    assert torch.ops.halstream_tests_taken.g(torch.ones(2, device="cuda"), 3.0).tolist() == [3, 3]


def test_sgl_kernel(torch: Any) -> None:
    import sgl_kernel  # type: ignore[import-not-found]

    x, residual, weight = torch.randn(3, 8, device="cuda"), torch.randn(3, 8, device="cuda"), torch.rand(8).cuda()
    rms = torch.nn.functional.rms_norm
    torch.testing.assert_close(sgl_kernel.rmsnorm(x, weight), rms(x, (8,), weight, 1e-6))
    torch.testing.assert_close(sgl_kernel.gemma_rmsnorm(x, weight), rms(x, (8,), weight + 1, 1e-6))
    torch.testing.assert_close(sgl_kernel.silu_and_mul(x), torch.nn.functional.silu(x[:, :4]) * x[:, 4:])
    added = x + residual
    sgl_kernel.fused_add_rmsnorm(x, residual, weight)
    torch.testing.assert_close(residual, added)
    torch.testing.assert_close(x, rms(added, (8,), weight, 1e-6))
    out = torch.empty_like(x)
    torch.ops.sgl_kernel.rmsnorm(out, added, weight, 1e-6, False)
    torch.testing.assert_close(out, x)
    weights, chosen = torch.empty(3, 2, device="cuda"), torch.empty(3, 2, dtype=torch.int32, device="cuda")
    sgl_kernel.topk_softmax(weights, chosen, x, renormalize=True)
    assert torch.equal(chosen.long(), x.topk(2).indices)
    with pytest.raises(NotImplementedError, match="fused_set_kv_buffer_arg"):
        sgl_kernel.apply_rope_with_cos_sin_cache_inplace(x, x, x, 8, x, fused_set_kv_buffer_arg=object())


def test_sgl_kernel_puts_tokens_of_no_expert_first(torch: Any) -> None:
    import sgl_kernel

    chosen = torch.tensor([[2, 0], [2, 3], [2, -1]], dtype=torch.int32, device="cuda")
    tokens = torch.empty(6 + 5, dtype=torch.int32, device="cuda")
    experts = torch.full((6,), 77, dtype=torch.int32, device="cuda")
    total = torch.empty(1, dtype=torch.int32, device="cuda")
    sgl_kernel.moe_align_block_size(chosen, 4 + 1, 2, tokens, experts, total)
    assert total.tolist() == [10]
    assert tokens.tolist() == [5, 6, 1, 6, 0, 2, 4, 6, 3, 6, 6] and experts.tolist() == [-1, 0, 2, 2, 3, 77]
