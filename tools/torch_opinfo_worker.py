"""One process of tools/torch_opinfo.py: reads names of a database's entries, prints the outcomes of each as JSON.

Usage: torch_opinfo_worker.py DATABASE SAMPLES OTHER_SAMPLES   (or DATABASE --names)
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import halstream.torch.cuda_on_host  # noqa: F401
import torch_compiled_worker
import torch_modules_worker
import torch_optimizers_worker
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.custom_op_db import custom_op_db
from torch_compare import copied, different, raised, tensors, to_cuda, total

import torch

OTHER = (torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.uint8, torch.bool)

#: Operators whose results nothing defines.
UNDEFINED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")

#: Operators whose other tensors must lie on the CPU.
ON_HOST = ("tensor_split",)


def call(op: Any, sample: Any) -> Any:
    value = op(sample.input, *sample.args, **sample.kwargs)
    return sample.output_process_fn_grad(value) if sample.output_process_fn_grad else value


def gradients(value: Any, sample: Any) -> Any:
    inputs = [one for one in tensors((sample.input, sample.args, sample.kwargs)) if one.requires_grad]
    result = total(value)
    return torch.autograd.grad(result, inputs, allow_unused=True) if inputs and result is not None else None


def random(op: Any, sample: Any, expected: Any) -> bool:
    """Return whether another seed gives another result; the database sets the seed of some operators itself."""
    seed = torch.manual_seed
    for other in range(4):
        torch.manual_seed = lambda given, plus=other + 1: seed(given + plus)
        try:
            torch.manual_seed(0)
            if different(call(op, sample), expected):
                return True
        except Exception:
            return False
        finally:
            torch.manual_seed = seed
    return False


def one_sample(op: Any, sample: Any, backward: bool) -> Iterator[tuple[str, str, str]]:
    here = (lambda value: to_cuda(value) if value is sample.input else value) if op.name in ON_HOST else to_cuda
    try:
        moved = sample.transform(here)
    except NotImplementedError as error:  # tensors that the device does not take
        yield "forward", raised(error), f"{type(error).__name__}: {error}"
        return
    kept = sample.transform(copied)
    try:
        torch.manual_seed(5)
        expected = call(op, sample)
    except Exception as error:
        wanted: Exception | None = error
    else:
        wanted = None
    try:
        torch.manual_seed(5)
        found = call(op, moved)
        torch.cuda.synchronize()
    except Exception as error:
        yield "forward", raised(error, wanted), f"{type(error).__name__}: {error}"
        return
    if wanted is not None:
        yield "forward", "differs", f"the CPU raised {type(wanted).__name__}: {wanted}"
        return
    difference = different(found, expected)
    if difference:
        alike = [(a.shape, a.dtype) for a in tensors(found)] == [(b.shape, b.dtype) for b in tensors(expected)]
        if alike and (op.name in UNDEFINED or random(op, kept, expected)):
            yield "forward", "ran", ""
            return
        yield "forward", "differs", difference
        return
    yield "forward", "equal", ""
    if not backward:
        return
    try:
        right = gradients(expected, sample)
    except Exception:
        return  # the operator has none on the CPU
    if right is None:
        return
    try:
        difference = different(gradients(found, moved), right)
        torch.cuda.synchronize()
    except Exception as error:
        yield "backward", raised(error), f"{type(error).__name__}: {error}"
        return
    yield "backward", "differs" if difference else "equal", difference


def operator_outcomes(op: Any, count: int, other: int) -> Iterator[dict[str, str]]:
    for dtype in (torch.float32, *OTHER):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        backward = bool(op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"))
        kind = str(dtype).removeprefix("torch.")
        try:
            torch.manual_seed(3)
            found = op.sample_inputs("cpu", dtype, requires_grad=backward)
            samples = list(itertools.islice(found, count if kind == "float32" else other))
        except Exception:
            continue  # the database has no samples of it on this machine
        for sample in samples:
            for which, outcome, text in one_sample(op, sample, backward):
                yield {"pass": which, "dtype": kind, "outcome": outcome, "text": text[:400]}


def database(name: str) -> tuple[list[tuple[str, Any]], Callable[..., Iterator[dict[str, str]]]]:
    """Return the named entries of a database, and what compares all samples of one."""
    if name == "modules":
        return torch_modules_worker.entries(), torch_modules_worker.outcomes
    if name == "optimizers":
        return torch_optimizers_worker.entries(), torch_optimizers_worker.outcomes
    if name == "compiled":
        return torch_compiled_worker.entries(), torch_compiled_worker.outcomes
    found = op_db if name == "operators" else [*autograd_function_db, *custom_op_db]
    return [(op.full_name, op) for op in found], operator_outcomes


def main() -> None:
    torch.set_num_threads(1)
    entries, outcomes = database(sys.argv[1])
    if sys.argv[2:] == ["--names"]:
        print(*dict.fromkeys(name for name, _ in entries))
        return
    count, other = map(int, sys.argv[2:])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # operators may print
    for line in sys.stdin:
        found = [one for name, entry in entries if name == line.strip() for one in outcomes(entry, count, other)]
        try:
            torch.cuda.synchronize()
        except Exception as error:
            found.append({"pass": "forward", "dtype": "?", "outcome": "raised", "text": f"afterwards: {error}"[:400]})
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
