"""Measures torch in this process: python -m benchmarks.torch_child KIND.

KIND is `cpu` for plain torch, `cuda` for torch on host streams, `sanitized` for that with the sanitizer, `kernels` for
Triton's kernels there, and `interpreted` for them in Triton's own interpreter. Runs in torch's environment and prints
the figures as one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from .measure import quiet

CALLS = 400  # in a batch: fewer than a GPU's queue of launches holds
BATCHES = 15
STEPS = 12


def per_call(call: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    """Return the microseconds of a call within a batch; what it enqueued is not waited for."""
    taken = []
    for _ in range(BATCHES):
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        taken.append((time.perf_counter() - began) / CALLS * 1e6)
        synchronize()
    return statistics.median(taken[2:])


def step(call: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    """Return the milliseconds of a training step and its completion."""
    taken = []
    for _ in range(STEPS):
        began = time.perf_counter()
        call()
        synchronize()
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken[3:])


def kernels(interpreted: bool) -> dict[str, float]:
    """Measure Triton's kernels; the interpreter runs each once, as it takes seconds."""
    if interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        import halstream.torch.cuda_on_host  # noqa: F401
    import torch

    from . import triton_kernels

    torch.set_num_threads(1)
    figures = {}
    with quiet():
        for name, call in triton_kernels.cases("cpu" if interpreted else "cuda").items():
            if interpreted:
                figures[name] = triton_kernels.processor_time(call, lambda: None, 1)
                continue
            call()  # compiles
            torch.cuda.synchronize()
            figures[name] = triton_kernels.processor_time(call, torch.cuda.synchronize, 15)
    return figures


def main(kind: str) -> None:
    """Measure, and print the figures."""
    if kind in ("kernels", "interpreted"):
        print(json.dumps(kernels(kind == "interpreted")), flush=True)
        return
    if kind != "cpu":
        import halstream.torch.cuda_on_host
    import torch

    from . import torch_models

    torch.manual_seed(0)
    device = "cpu" if kind == "cpu" else "cuda"
    scope: Any = contextlib.nullcontext()
    if kind == "sanitized":
        import halstream

        scope = halstream.sanitize(on="raise")

    def synchronize() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    with scope, quiet():
        a, b = torch.ones(16, 16, device=device), torch.ones(16, 16, device=device)
        figures = {"add": per_call(lambda: torch.add(a, b), synchronize)}
        for name in ("resnet", "transformer", *(["block"] if kind != "sanitized" else [])):
            figures[name] = step(getattr(torch_models, f"{name}_step")(device), synchronize)
        synchronize()
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
