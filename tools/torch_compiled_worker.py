"""The samples of torch's operators compiled by Inductor for 'cuda', for tools/torch_opinfo_worker.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from halstream.torch._redirect import triton as redirected_triton
from torch.testing._internal.common_methods_invocations import op_db
from torch_compare import different, raised, to_cuda

import torch

#: Operators whose results nothing defines.
UNDEFINED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")

_launches = itertools.count()
_launched = redirected_triton._Launcher._enqueue


def _counted(self: Any, *args: Any) -> None:
    next(_launches)
    _launched(self, *args)


redirected_triton._Launcher._enqueue = _counted  # type: ignore[method-assign]


def entries() -> list[tuple[str, Any]]:
    """Return the operators by name."""
    return [(op.full_name, op) for op in op_db]


def _seeded(call: Callable[[], Any]) -> Any:
    torch.manual_seed(5)
    result = call()
    torch.cuda.synchronize()
    return result


def outcomes(op: Any, count: int, other: int) -> Iterator[dict[str, str]]:
    """Compare what the compiled operator gives with what it gives as it is, for samples in float32 or else in int64."""
    supported = op.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in supported else torch.int64
    if dtype not in supported:
        return
    try:
        torch.manual_seed(3)
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), count))
    except Exception:
        return  # the database has no samples of it on this machine
    kind = str(dtype).removeprefix("torch.")
    for sample in samples:
        outcome, text = _one(op, sample)
        yield {"pass": "compiled", "dtype": kind, "outcome": outcome, "text": text[:400]}


def _one(op: Any, sample: Any) -> tuple[str, str]:
    try:
        moved, again = sample.transform(to_cuda), sample.transform(to_cuda)
        expected = _seeded(lambda: op(moved.input, *moved.args, **moved.kwargs))
    except Exception as error:
        return "raised on both", f"{type(error).__name__}: {error}"

    def function(given: Any, *args: Any, **kwargs: Any) -> Any:
        return op(given, *args, **kwargs)

    torch._dynamo.reset()
    before = next(_launches)
    try:
        found = _seeded(lambda: torch.compile(function)(again.input, *again.args, **again.kwargs))
    except Exception as error:
        return raised(error), f"{type(error).__name__}: {error}"
    kernels = next(_launches) - before - 1
    difference = different(found, expected, rtol=1e-4, atol=1e-4)
    if not difference:
        return "equal", f"{kernels} kernels"
    if op.name in UNDEFINED or _random(op, sample, expected):
        return "ran", f"{kernels} kernels"
    return "differs", difference


def _random(op: Any, sample: Any, expected: Any) -> bool:
    """Return whether another seed gives another result; the database sets the seed of some operators itself."""
    seed = torch.manual_seed
    torch.manual_seed = lambda given: seed(given + 1)
    try:
        moved = sample.transform(to_cuda)
        return bool(different(_seeded(lambda: op(moved.input, *moved.args, **moved.kwargs)), expected))
    except Exception:
        return False
    finally:
        torch.manual_seed = seed
