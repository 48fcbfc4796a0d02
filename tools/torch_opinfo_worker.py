"""One process of tools/torch_opinfo.py: reads names of operators, prints the outcomes of each as a line of JSON."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import halstream.torch.cuda_on_host  # noqa: F401
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten

import torch

OTHER = (torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.uint8, torch.bool)

#: Operators whose results nothing defines.
UNDEFINED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")

#: Operators whose other tensors must lie on the CPU.
ON_HOST = ("tensor_split",)


def to_cuda(value: Any) -> Any:
    """Return a tensor's copy on the device with its strides; other values as they are."""
    if isinstance(value, torch.device):
        return torch.device("cuda") if value.type == "cpu" else value
    if isinstance(value, str) and value == "cpu":
        return "cuda"
    if isinstance(value, torch.Generator):
        return torch.Generator("cuda").manual_seed(value.initial_seed() & 0x7FFFFFFF)
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


def call(op: Any, sample: Any) -> Any:
    value = op(sample.input, *sample.args, **sample.kwargs)
    return sample.output_process_fn_grad(value) if sample.output_process_fn_grad else value


def tensors(value: Any) -> list[Any]:
    return [one for one in tree_flatten(value)[0] if isinstance(one, torch.Tensor)]


def different(found: Any, expected: Any) -> str:
    """Return how the results differ, '' if they do not."""
    there, here = tree_flatten(found)[0], tree_flatten(expected)[0]
    if len(there) != len(here):
        return f"{len(there)} results, not {len(here)}"
    for a, b in zip(there, here, strict=True):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{tuple(a.shape)} of {a.dtype}, not {tuple(b.shape)} of {b.dtype}"
            loose = {"rtol": 2e-2, "atol": 2e-2} if b.dtype in (torch.float16, torch.bfloat16) else {}
            try:
                torch.testing.assert_close(
                    a.detach().cpu().resolve_conj(), b.detach().resolve_conj(), equal_nan=True, **loose
                )
            except AssertionError as error:
                return str(error).splitlines()[0] + " " + " ".join(str(error).splitlines()[2:4])
        elif not isinstance(a, torch.Tensor) and a != b and not (a != a and b != b) and not isinstance(b, torch.device):
            return f"{a!r:.60}, not {b!r:.60}"
    return ""


def gradients(value: Any, sample: Any) -> Any:
    inputs = [one for one in tensors((sample.input, sample.args, sample.kwargs)) if one.requires_grad]
    outputs = [one for one in tensors(value) if one.requires_grad and (one.is_floating_point() or one.is_complex())]
    if not inputs or not outputs:
        return None
    total = sum((one.abs() if one.is_complex() else one).sum().to(torch.float64) for one in outputs)
    return torch.autograd.grad(total, inputs, allow_unused=True)


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
    moved = sample.transform(here)
    kept = sample.transform(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x
    )
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
    except NotImplementedError as error:
        outcome = "equal" if wanted is not None else "refused" if "halstream" in str(error) else "raised"
        yield "forward", outcome, str(error)
        return
    except Exception as error:
        yield "forward", "equal" if wanted is not None else "raised", f"{type(error).__name__}: {error}"
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
        outcome = "refused" if isinstance(error, NotImplementedError) and "halstream" in str(error) else "raised"
        yield "backward", outcome, f"{type(error).__name__}: {error}"
        return
    yield "backward", "differs" if difference else "equal", difference


def outcomes(name: str, count: int, other: int) -> Iterator[dict[str, str]]:
    for op in (one for one in op_db if one.full_name == name):
        for dtype in (torch.float32, *OTHER):
            if dtype not in op.supported_dtypes("cpu"):
                continue
            backward = bool(op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"))
            kind = str(dtype).removeprefix("torch.")
            try:
                torch.manual_seed(3)
                samples = list(
                    itertools.islice(
                        op.sample_inputs("cpu", dtype, requires_grad=backward), count if kind == "float32" else other
                    )
                )
            except Exception:
                continue  # the database has no samples of it on this machine
            for sample in samples:
                for which, outcome, text in one_sample(op, sample, backward):
                    yield {"pass": which, "dtype": kind, "outcome": outcome, "text": text[:400]}


def main() -> None:
    torch.set_num_threads(1)
    count, other = map(int, sys.argv[1:])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # operators may print
    for line in sys.stdin:
        found = list(outcomes(line.strip(), count, other))
        try:
            torch.cuda.synchronize()
        except Exception as error:
            found.append({"pass": "forward", "dtype": "?", "outcome": "raised", "text": f"afterwards: {error}"[:400]})
        answers.write(json.dumps(found) + "\n")
        answers.flush()


main()
