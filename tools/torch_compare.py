"""What the samples of torch's databases have in common: values moved to 'cuda', and results compared with the CPU's."""

from __future__ import annotations

from typing import Any

from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_flatten

import torch


def to_cuda(value: Any) -> Any:
    """Return a tensor's copy on the device with its strides; other values as they are."""
    if isinstance(value, torch.device):
        return torch.device("cuda") if value.type == "cpu" else value
    if isinstance(value, str) and value == "cpu":
        return "cuda"
    if isinstance(value, torch.Generator):
        return torch.Generator("cuda").manual_seed(value.initial_seed() & 0x7FFFFFFF)
    if isinstance(value, PackedSequence):
        data, sizes, *indices = value
        return PackedSequence(to_cuda(data), sizes, *map(to_cuda, indices))
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return value
    source = value.detach()
    if (
        source.layout is not torch.strided
        or source.is_contiguous()
        or 0 in source.stride()
        or source.is_conj()
        or source.is_neg()
    ):
        moved = source.to("cuda")
    else:
        moved = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype, device="cuda").copy_(source)
    return moved.requires_grad_(value.requires_grad)


def copied(value: Any) -> Any:
    """Return a copy of a tensor that has no history; other values as they are."""
    if isinstance(value, PackedSequence):
        return PackedSequence(*map(copied, value))
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def leaves(value: Any) -> list[Any]:
    """Return what a tree of values consists of; of a packed sequence its data."""
    return [one.data if isinstance(one, PackedSequence) else one for one in tree_flatten(value)[0]]


def tensors(value: Any) -> list[Any]:
    return [one for one in leaves(value) if isinstance(one, torch.Tensor)]


def raised(error: Exception, wanted: Exception | None = None) -> str:
    """Return the outcome of a sample that raised on 'cuda'; `wanted` is what it raised on the CPU."""
    if wanted is not None:
        return "raised on both"
    return "refused" if isinstance(error, NotImplementedError) and "halstream" in str(error) else "raised"


def total(value: Any) -> Any:
    """Return the sum of all results that have gradients, None if none has."""
    outputs = [one for one in tensors(value) if one.requires_grad and (one.is_floating_point() or one.is_complex())]
    return sum((one.abs() if one.is_complex() else one).sum().to(torch.float64) for one in outputs) if outputs else None


def different(found: Any, expected: Any, **bounds: float) -> str:
    """Return how the results differ, '' if they do not; `bounds` are other ones than torch's for 32 bits and more."""
    there, here = leaves(found), leaves(expected)
    if len(there) != len(here):
        return f"{len(there)} results, not {len(here)}"
    for a, b in zip(there, here, strict=True):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{tuple(a.shape)} of {a.dtype}, not {tuple(b.shape)} of {b.dtype}"
            loose = {"rtol": 2e-2, "atol": 2e-2} if b.dtype in (torch.float16, torch.bfloat16) else bounds
            try:
                torch.testing.assert_close(
                    a.detach().cpu().resolve_conj(), b.detach().cpu().resolve_conj(), equal_nan=True, **loose
                )
            except AssertionError as error:
                return str(error).splitlines()[0] + " " + " ".join(str(error).splitlines()[2:4])
        elif not isinstance(a, torch.Tensor) and a != b and not (a != a and b != b) and not isinstance(b, torch.device):
            return f"{a!r:.60}, not {b!r:.60}"
    return ""
