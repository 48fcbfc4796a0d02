"""Compares the samples of torch's database of modules on 'cuda' with the CPU, for tools/torch_opinfo_worker.py."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_map
from torch_compare import copied, different, raised, tensors, to_cuda, total

import torch

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64)


def entries() -> list[tuple[str, Any]]:
    return [(info.name, info) for info in module_db]


def call(module: Any, given: Any) -> Any:
    torch.manual_seed(2)
    return module(*given[0], **given[1])


def build(info: Any, sample: Any, dtype: torch.dtype, training: bool) -> Any:
    """Return a sample's module with the same weights at each call."""
    torch.manual_seed(1)
    module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
    return module.to(dtype).train(training)


def gradients(module: Any, given: Any, result: Any) -> Any:
    """Return the gradients of the parameters and of the arguments, None if nothing has any."""
    value = total(result)
    if value is None:
        return None
    value.backward()
    grown = [*module.parameters(), *tensors(given)]
    return [one.grad for one in grown if one.is_leaf and one.grad is not None]


def one_sample(info: Any, sample: Any, dtype: torch.dtype, training: bool) -> Iterator[tuple[str, str, str]]:
    given = sample.forward_input.args, sample.forward_input.kwargs
    here, there = tree_map(copied, given), tree_map(to_cuda, given)
    module = build(info, sample, dtype, training)
    wanted: Exception | None = None
    try:
        moved = copy.deepcopy(module).to("cuda")
        if info.is_lazy:  # the first call draws the weights on the device of its input
            call(moved, there)
            call(module, here)
            module.load_state_dict(moved.state_dict())
        try:
            expected = call(module, here)
        except Exception as error:
            wanted = error
        found = call(moved, there)
        torch.cuda.synchronize()
    except Exception as error:
        yield "forward", raised(error, wanted), f"{type(error).__name__}: {error}"
        return
    if wanted is not None:
        yield "forward", "differs", f"the CPU raised {type(wanted).__name__}: {wanted}"
        return
    difference = different(found, expected)
    yield "forward", "differs" if difference else "equal", difference
    if difference:
        return
    try:
        right = gradients(module, here, expected)
    except Exception:
        return  # the module has none on the CPU
    if right is None:
        return
    try:
        difference = different(gradients(moved, there, found), right)
    except Exception as error:
        yield "backward", raised(error), f"{type(error).__name__}: {error}"
        return
    yield "backward", "differs" if difference else "equal", difference


def outcomes(info: Any, _count: int, _other: int) -> Iterator[dict[str, str]]:
    """Compare all samples of a module, whatever the number asked for: there are few of each."""
    for dtype in TYPES:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        for training in (True, False) if info.train_and_eval_differ else (True,):
            torch.manual_seed(3)
            options = {"device": "cpu", "dtype": dtype, "requires_grad": True, "training": training}
            for sample in info.module_inputs_func(info, **options):
                if sample.forward_input is None:
                    continue
                for which, outcome, text in one_sample(info, sample, dtype, training):
                    kind = str(dtype).removeprefix("torch.")
                    yield {"pass": which, "dtype": kind, "outcome": outcome, "text": text[:400]}
