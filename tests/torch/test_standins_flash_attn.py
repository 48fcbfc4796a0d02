"""The stand-in for flash_attn, against attention that is written out row by row in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest

TOLERANCE = {"rtol": 2e-2, "atol": 2e-2}  # of bfloat16


@pytest.fixture
def flash(torch: Any) -> Any:
    """Return the package, as a program imports it."""
    import flash_attn

    return flash_attn


def reference(torch: Any, q: Any, k: Any, v: Any, **rule: Any) -> Any:
    """Return what one sequence's queries (queries, heads, width) read, one row at a time."""
    q, k, v = q.double(), k.double(), v.double()
    queries, heads, width = q.shape
    keys, groups = k.shape[0], heads // k.shape[1]
    left, right = rule.get("window", (-1, -1))
    right = 0 if rule.get("causal") else right
    rows = []
    for i in range(queries):
        place = i + keys - queries
        for h in range(heads):
            seen = [j for j in range(keys) if (right < 0 or j <= place + right) and (left < 0 or j >= place - left)]
            if not seen:
                rows.append(q[i, h] * 0)
                continue
            scores = k[seen, h // groups] @ q[i, h] / math.sqrt(width)
            if rule.get("softcap"):
                scores = rule["softcap"] * torch.tanh(scores / rule["softcap"])
            if rule.get("slopes") is not None:
                distance = torch.tensor([abs(place - j) for j in seen], dtype=torch.double)
                scores = scores - rule["slopes"][h].double() * distance
            rows.append(torch.softmax(scores, 0) @ v[seen, h // groups])
    return torch.stack(rows).view(queries, heads, width)


def made(torch: Any, *shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda", requires_grad=True)


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"causal": True},
        {"window": (2, 1)},
        {"causal": True, "window": (2, 0)},
        {"softcap": 3.0},
        {"slopes": True, "causal": True},
    ],
    ids=str,
)
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 5), (5, 2)])
def test_forward_and_backward_are_those_of_attention_row_by_row(
    torch: Any, flash: Any, rule: dict[str, Any], queries: int, keys: int
) -> None:
    q, k, v = made(torch, 2, queries, 4, 8), made(torch, 2, keys, 2, 8), made(torch, 2, keys, 2, 8)
    slopes = torch.rand(4, device="cuda") if rule.get("slopes") else None
    options = {"causal": rule.get("causal", False), "window_size": rule.get("window", (-1, -1))}
    out = flash.flash_attn_func(q, k, v, softcap=rule.get("softcap", 0.0), alibi_slopes=slopes, **options)
    grad = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v), grad)
    host = [one.detach().cpu().double().requires_grad_() for one in (q, k, v)]
    rule = {**rule, "slopes": None if slopes is None else slopes.cpu()}
    expected = torch.stack([reference(torch, *(x[i] for x in host), **rule) for i in range(2)])
    gradients = torch.autograd.grad(expected, host, grad.cpu().double())
    torch.testing.assert_close(out.cpu().double(), expected, **TOLERANCE)
    for one, wanted in zip(found, gradients, strict=True):
        torch.testing.assert_close(one.cpu().double(), wanted, **TOLERANCE)


def test_packed_tensors_are_the_same_attention(torch: Any, flash: Any) -> None:
    qkv = made(torch, 2, 6, 3, 2, 8)
    expected = flash.flash_attn_func(*qkv.unbind(2), causal=True)
    assert torch.equal(flash.flash_attn_qkvpacked_func(qkv, causal=True), expected)
    assert torch.equal(flash.flash_attn_kvpacked_func(qkv[:, :, 0], qkv[:, :, 1:], causal=True), expected)


def test_sequences_of_different_lengths_do_not_see_each_other(torch: Any, flash: Any) -> None:
    lengths_q, lengths_k = [3, 0, 4, 1], [5, 2, 4, 0]
    starts_q = torch.tensor([0, *lengths_q], device="cuda").cumsum(0, dtype=torch.int32)
    starts_k = torch.tensor([0, *lengths_k], device="cuda").cumsum(0, dtype=torch.int32)
    q, k, v = made(torch, 8, 4, 8), made(torch, 11, 2, 8), made(torch, 11, 2, 8)
    out, lse, _ = flash.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 4, 5, causal=True, return_attn_probs=True)
    grad = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v), grad)
    host = [one.detach().cpu().double().requires_grad_() for one in (q, k, v)]
    parts = [host[0].split(lengths_q), host[1].split(lengths_k), host[2].split(lengths_k)]
    expected = torch.cat([reference(torch, *one, causal=True) for one in zip(*parts, strict=True) if len(one[0])])
    gradients = torch.autograd.grad(expected, host, grad.cpu().double())
    torch.testing.assert_close(out.cpu().double(), expected, **TOLERANCE)
    assert lse.shape == (4, 8) and lse.dtype == torch.float32 and lse[:, 7].isinf().all()
    for one, wanted in zip(found, gradients, strict=True):
        torch.testing.assert_close(one.cpu().double(), wanted, **TOLERANCE)
    packed = made(torch, 8, 3, 2, 8)
    whole = flash.flash_attn_varlen_qkvpacked_func(packed, starts_q, 4)
    apart = flash.flash_attn_varlen_kvpacked_func(packed[:, 0], packed[:, 1:], starts_q, starts_q, 4, 4)
    assert torch.equal(whole, apart)
    assert torch.equal(whole, flash.flash_attn_varlen_func(*packed.unbind(1), starts_q, starts_q, 4, 4))


def test_the_varlen_functions_do_not_wait_for_the_device(torch: Any, flash: Any, held: Any) -> None:
    q, starts = made(torch, 8, 2, 8), torch.tensor([0, 3, 8], dtype=torch.int32, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    gate = held(side)
    with torch.cuda.stream(side):
        out = flash.flash_attn_varlen_func(q, q, q, starts, starts, 5, 5)
        assert not side.query()
    gate.open()
    side.synchronize()
    assert out.isfinite().all()


@pytest.mark.parametrize("paged", [False, True])
def test_the_cache_takes_new_keys_in_place(torch: Any, flash: Any, paged: bool) -> None:
    used = torch.tensor([3, 250], dtype=torch.int32, device="cuda")
    keys = torch.randn(2, 512, 2, 8, dtype=torch.bfloat16, device="cuda")
    values = torch.randn_like(keys)
    q, k, v = (torch.randn(2, 10, h, 8, dtype=torch.bfloat16, device="cuda") for h in (4, 2, 2))
    table = torch.tensor([[3, 0], [1, 2]], dtype=torch.int32, device="cuda")

    def stored(whole: Any) -> Any:
        return whole.clone() if not paged else whole.view(2, 2, 256, 2, 8).flatten(0, 1)[[1, 2, 3, 0]].clone()

    def seen(cache: Any) -> Any:
        return cache.cpu() if not paged else cache[[3, 0, 1, 2]].view(2, 512, 2, 8).cpu()

    k_cache, v_cache = stored(keys), stored(values)
    out, lse = flash.flash_attn_with_kvcache(
        q, k_cache, v_cache, k, v, cache_seqlens=used, causal=True, block_table=table if paged else None,
        return_softmax_lse=True,
    )  # fmt: skip
    assert lse.shape == (2, 4, 10)
    for i, length in enumerate((3, 250)):
        whole = [one[i].cpu() for one in (keys, values)]
        for one, new in zip(whole, (k, v), strict=True):
            one[length : length + 10] = new[i].cpu()
        assert torch.equal(seen(k_cache)[i], whole[0]) and torch.equal(seen(v_cache)[i], whole[1])
        expected = reference(torch, q[i].cpu(), *(one[: length + 10] for one in whole), causal=True)
        torch.testing.assert_close(out[i].cpu().double(), expected, **TOLERANCE)


def test_what_a_cache_holds_behind_its_end_is_not_read(torch: Any, flash: Any) -> None:
    q = torch.randn(1, 1, 2, 8, dtype=torch.float16, device="cuda")
    cache = torch.full((3, 16, 2, 8), float("nan"), dtype=torch.float16, device="cuda")
    cache[2, :4] = 1
    rows = torch.tensor([2], dtype=torch.int32, device="cuda")
    out = flash.flash_attn_with_kvcache(q, cache, cache, cache_seqlens=4, cache_batch_idx=rows)
    assert torch.equal(out, torch.ones_like(out))


@pytest.mark.parametrize("leftpad", [None, 3])
def test_a_cache_rotates_queries_and_keys(torch: Any, flash: Any, leftpad: int | None) -> None:
    from flash_attn.layers.rotary import apply_rotary_emb

    rule: dict[str, Any] = {"cache_seqlens": 5, "causal": True}
    if leftpad is not None:
        rule["cache_leftpad"] = torch.tensor([leftpad], dtype=torch.int32, device="cuda")
    angles = torch.outer(torch.arange(16.0), torch.rand(4)).cuda()
    cos, sin = angles.cos(), angles.sin()
    q, k, v = (torch.randn(1, 2, 2, 8, dtype=torch.float16, device="cuda") for _ in range(3))
    caches = [torch.randn(1, 16, 2, 8, dtype=torch.float16, device="cuda") for _ in range(2)]
    plain = [one.clone() for one in caches]
    out = flash.flash_attn_with_kvcache(q, *caches, k, v, rotary_cos=cos, rotary_sin=sin, **rule)
    turned = [apply_rotary_emb(one, cos, sin, interleaved=True, seqlen_offsets=5) for one in (q, k)]
    assert torch.equal(out, flash.flash_attn_with_kvcache(turned[0], *plain, turned[1], v, **rule))
    assert torch.equal(caches[0], plain[0])


def test_the_functions_of_rings_give_the_same_gradients(torch: Any, flash: Any) -> None:
    from flash_attn import flash_attn_interface as inside

    q, k, v = made(torch, 2, 6, 4, 8), made(torch, 2, 6, 2, 8), made(torch, 2, 6, 2, 8)
    expected = flash.flash_attn_func(q, k, v, causal=True, softcap=2.0)
    grad = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, (q, k, v), grad)
    rule = (0.0, 8**-0.5, True, -1, -1, 2.0, None)
    out, lse, _, state = inside._flash_attn_forward(q, k, v, *rule, False)
    assert torch.equal(out, expected)
    found = [torch.empty_like(one) for one in (q, k, v)]
    inside._flash_attn_backward(grad, q, k, v, out, lse, *found, *rule, False, state)
    for one, wanted in zip(found, gradients, strict=True):
        torch.testing.assert_close(one, wanted, **TOLERANCE)
    starts = torch.tensor([0, 2, 6], dtype=torch.int32, device="cuda")
    flat = [one.detach()[0].requires_grad_() for one in (q, k, v)]
    expected = flash.flash_attn_varlen_func(*flat, starts, starts, 4, 4, causal=True, softcap=2.0)
    gradients = torch.autograd.grad(expected, flat, grad[0])
    out, lse, _, state = inside._flash_attn_varlen_forward(*flat, starts, starts, 4, 4, *rule)
    found = [torch.empty_like(one) for one in flat]
    inside._flash_attn_varlen_backward(grad[0], *flat, out, lse, *found, starts, starts, 4, 4, *rule, False, state)
    for one, wanted in zip(found, gradients, strict=True):
        torch.testing.assert_close(one, wanted, **TOLERANCE)


def test_dropout_scales_what_is_left(torch: Any, flash: Any) -> None:
    q, v = torch.zeros(1, 64, 2, 8, dtype=torch.float16, device="cuda"), torch.ones(1, 64, 2, 8).half().cuda()
    out, _, shown = flash.flash_attn_func(q, q, v, dropout_p=0.25, return_attn_probs=True)
    assert shown.shape == (1, 2, 64, 64) and 0.15 < (shown < 0).float().mean() < 0.35
    kept = (shown >= 0).sum(-1) / 64 / 0.75
    torch.testing.assert_close(out[..., 0].transpose(1, 2).float(), kept, **TOLERANCE)


def test_autocast_does_not_change_it(torch: Any, flash: Any) -> None:
    q, k, v = (torch.randn(1, 6, 2, 8, dtype=torch.float16, device="cuda") for _ in range(3))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        inside = flash.flash_attn_func(q, k, v)
    assert inside.dtype == torch.float16 and torch.equal(inside, flash.flash_attn_func(q, k, v))


def test_what_the_kernels_refuse_is_refused(torch: Any, flash: Any) -> None:
    from flash_attn.flash_attn_interface import _flash_attn_forward

    q = torch.ones(1, 4, 2, 8, dtype=torch.float16, device="cuda")
    with pytest.raises(RuntimeError, match="only supports fp16 and bf16"):
        flash.flash_attn_func(q.float(), q.float(), q.float())
    with pytest.raises(RuntimeError, match="q must be a CUDA tensor"):
        flash.flash_attn_func(q.cpu(), q, q)
    with pytest.raises(RuntimeError, match="must divide number of heads"):
        flash.flash_attn_func(q, torch.cat([q, q[:, :, :1]], 2), torch.cat([q, q[:, :, :1]], 2))
    with pytest.raises(RuntimeError, match="divisible by 256"):
        flash.flash_attn_with_kvcache(q, q, q, block_table=torch.zeros(1, 1, dtype=torch.int32, device="cuda"))
    with pytest.raises(NotImplementedError, match=r"_flash_attn_forward\(dropout_p=0\.5\).*call flash_attn_func"):
        _flash_attn_forward(q, q, q, 0.5, 1.0, False, -1, -1, 0.0, None, False)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embeddings_turn_pairs(torch: Any, flash: Any, interleaved: bool) -> None:
    from flash_attn.layers.rotary import RotaryEmbedding, apply_rotary_emb

    angles = torch.outer(torch.arange(12.0, dtype=torch.double), torch.rand(3, dtype=torch.double)).cuda()
    x = torch.randn(2, 5, 2, 8, device="cuda", requires_grad=True)
    offsets = torch.tensor([1, 7], device="cuda")
    out = apply_rotary_emb(x, angles.cos().float(), angles.sin().float(), interleaved, seqlen_offsets=offsets)
    first, second = (x[..., :6:2], x[..., 1:6:2]) if interleaved else (x[..., :3], x[..., 3:6])
    turn = torch.stack([angles[1:6], angles[7:12]]).unsqueeze(2)
    turned = torch.complex(first.double(), second.double()) * torch.polar(torch.ones_like(turn), turn)
    real, imaginary = (out[..., :6:2], out[..., 1:6:2]) if interleaved else (out[..., :3], out[..., 3:6])
    torch.testing.assert_close(torch.complex(real, imaginary).to(torch.complex128), turned, rtol=1e-5, atol=1e-5)
    assert torch.equal(out[..., 6:], x[..., 6:])
    # A rotation keeps lengths, and so does its derivative.
    gradient = torch.autograd.grad(out, x, x.detach())[0]
    torch.testing.assert_close(gradient.norm(), x.norm())
    layer = RotaryEmbedding(8, interleaved=interleaved, device="cuda")
    qkv = torch.randn(1, 4, 3, 2, 8, device="cuda")
    before = qkv.clone()
    assert layer(qkv) is qkv and torch.equal(qkv[:, :, 2], before[:, :, 2])
    assert torch.equal(qkv[:, 0], before[:, 0]) and not torch.equal(qkv[:, 1, :2], before[:, 1, :2])


def test_norms_and_the_cross_entropy_are_torchs(torch: Any, flash: Any) -> None:
    from flash_attn.losses.cross_entropy import CrossEntropyLoss
    from flash_attn.ops.layer_norm import dropout_add_layer_norm
    from flash_attn.ops.rms_norm import RMSNorm, dropout_add_rms_norm

    x, residual, weight, bias = (torch.randn(*s, device="cuda") for s in ((3, 8), (3, 8), (8,), (8,)))
    norm, added = dropout_add_layer_norm(x, residual, weight, bias, 0.0, 1e-5, prenorm=True)
    torch.testing.assert_close(norm, torch.nn.functional.layer_norm(x + residual, (8,), weight, bias))
    assert torch.equal(added, x + residual)
    torch.testing.assert_close(
        dropout_add_rms_norm(x, residual, weight, None, 0.0, 1e-6),
        torch.nn.functional.rms_norm(x + residual, (8,), weight, 1e-6),
    )
    assert RMSNorm(8, device="cuda")(x.half()).dtype == torch.float16
    logits = torch.randn(6, 9, device="cuda", requires_grad=True)
    labels = torch.tensor([1, -100, 3, 8, 0, 2], device="cuda")
    for reduction in ("mean", "sum", "none"):
        loss = CrossEntropyLoss(reduction=reduction, label_smoothing=0.1)(logits, labels)
        torch.testing.assert_close(
            loss, torch.nn.functional.cross_entropy(logits, labels, reduction=reduction, label_smoothing=0.1)
        )
    loss, square = CrossEntropyLoss(lse_square_scale=0.5, return_z_loss=True, reduction="sum")(logits, labels)
    torch.testing.assert_close(square, 0.5 * logits.logsumexp(-1)[labels >= 0].square().sum())
    with pytest.raises(NotImplementedError, match="process_group"):
        CrossEntropyLoss(process_group=object())(logits, labels)


def test_padding_goes_and_comes_back(torch: Any, flash: Any) -> None:
    from flash_attn.bert_padding import index_first_axis, pad_input, unpad_input, unpad_input_for_concatenated_sequences

    hidden = torch.randn(2, 4, 3, device="cuda")
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]], device="cuda")
    tokens, indices, starts, longest, used = unpad_input(hidden, mask)
    assert starts.tolist() == [0, 2, 5] and starts.dtype == torch.int32 and longest == 3 and used.tolist() == [2, 3]
    assert torch.equal(pad_input(tokens, indices, 2, 4), hidden * mask.unsqueeze(-1))
    assert torch.equal(tokens, index_first_axis(hidden.flatten(0, 1), indices))
    lengths = torch.tensor([[1, 2, 0, 0], [4, 0, 0, 0]], device="cuda")
    tokens, _, starts, longest = unpad_input_for_concatenated_sequences(hidden, lengths)
    assert starts.tolist() == [0, 1, 3, 7] and longest == 4 and torch.equal(tokens[:3], hidden[0, :3])


def test_transformers_takes_it_for_flash_attention_2(program: Any) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    done = program(
        """
        import copy, warnings
        warnings.simplefilter("ignore")
        import halstream.torch.cuda_on_host, torch
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=64,
        )
        found = []
        for kind in ("flash_attention_2", "eager"):
            torch.manual_seed(0)
            options = dict(attn_implementation=kind, dtype=torch.bfloat16)
            model = LlamaForCausalLM._from_config(copy.deepcopy(config), **options).cuda()
            ids = torch.arange(18, device="cuda").view(2, 9)
            mask = torch.ones_like(ids)
            mask[1, :3] = 0
            out = model(ids, attention_mask=mask, labels=ids)
            out.loss.backward()
            found.append((out.logits[mask.bool()], model.model.layers[0].self_attn.k_proj.weight.grad))
        for one, other in zip(*found):
            torch.testing.assert_close(one, other, rtol=0.05, atol=0.01)
        print("the same")
        """
    )
    assert done.stdout == "the same\n", done.stderr
