"""Compares the variants of torch's database of optimizers on 'cuda' with the CPU, for tools/torch_opinfo_worker.py."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from torch.testing._internal.common_optimizers import _get_optim_inputs_including_global_cliquey_kwargs as variants
from torch.testing._internal.common_optimizers import optim_db
from torch_compare import different, raised, to_cuda

import torch

TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.complex64)
STEPS = 4
#: How far sums in another order may lead apart within these steps.
BOUNDS = {"rtol": 1e-4, "atol": 1e-4}
ALONE = ("Muon",)  #: Optimizers of matrices only.


def entries() -> list[tuple[str, Any]]:
    return [(info.name, info) for info in optim_db]


def train(info: Any, options: dict[str, Any], parameters: list[Any], gradients: list[list[Any]]) -> Any:
    """Return the parameters and the optimizer's state after the steps; after each the state is saved and loaded."""
    differentiable = options.get("differentiable", False)
    if differentiable:  # a step that is part of the graph does not change leaves
        parameters = [one.clone() for one in parameters]
    optimizer = info.optim_cls(parameters, **options)

    def closure() -> Any:
        return sum((one * one.conj()).real.sum() for one in parameters)

    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = gradient.clone()
        optimizer.step(*[closure] if info.step_requires_closure else [])
        if not differentiable:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    return [parameter.detach() for parameter in parameters], optimizer.state_dict()["state"]


def one_sample(info: Any, options: dict[str, Any], dtype: torch.dtype) -> tuple[str, str]:
    torch.manual_seed(0)
    shapes = [(4, 5), (7, 3)] if info.name in ALONE else [(4, 5), (7, 3), (6,)]
    weights = [torch.randn(shape, dtype=dtype) for shape in shapes]
    gradients = [[torch.randn_like(one) for one in weights] for _ in range(STEPS)]
    # The variants for graphs exist on accelerators only; the numbers are those of the plain one.
    plain = dict.fromkeys(("capturable", "foreach"), False) if options.get("capturable") else {}
    here = {**options, **{name: plain[name] for name in plain if name in options}}
    there = {name: to_cuda(value) for name, value in options.items()}
    wanted: Exception | None = None
    try:
        expected = train(info, here, [torch.nn.Parameter(one.clone()) for one in weights], gradients)
    except Exception as error:
        wanted = error
    try:
        moved = [torch.nn.Parameter(one.cuda()) for one in weights]
        found = train(info, there, moved, [[one.cuda() for one in step] for step in gradients])
        torch.cuda.synchronize()
    except Exception as error:
        return raised(error, wanted), f"{type(error).__name__}: {error}"
    if wanted is not None:
        return "differs", f"the CPU raised {type(wanted).__name__}: {wanted}"
    difference = different(found, expected, **BOUNDS if dtype is not torch.float64 else {})
    return "differs" if difference else "equal", difference


def outcomes(info: Any, _count: int, _other: int) -> Iterator[dict[str, str]]:
    """Compare all variants of an optimizer, foreach and fused ones included, after several steps."""
    for dtype in TYPES:
        if dtype is torch.complex64 and not info.supports_complex:
            continue
        for variant in variants(torch.device("cuda"), dtype, info):
            outcome, text = one_sample(info, dict(variant.kwargs), dtype)
            kind = str(dtype).removeprefix("torch.")
            yield {"pass": "steps", "dtype": kind, "outcome": outcome, "text": text[:400]}
