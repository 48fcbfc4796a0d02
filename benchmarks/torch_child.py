"""Measures one kind of device in this process: python -m benchmarks.torch_child KIND.

KIND is `cpu` for plain torch, `cuda` for torch on host streams, `sanitized` for that with the sanitizer, or
one of them with `-memory` behind it. Each line of the standard input names a measurement, its figures are
printed as a line of JSON: processes of several kinds can take turns. Runs in torch's environment.
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

from .measure import quiet, resident

CALLS = 400  # in a batch: fewer than a GPU's queue of launches holds
BATCHES = 15
SMALL_STEPS = 1000

Figures = dict[str, float]


def started(kind: str) -> tuple[Any, Figures]:
    """Import torch as the kind has it and run a first operator; return the module `models` and the time."""
    began = time.perf_counter()
    if kind != "cpu":
        import halstream.torch.cuda_on_host  # noqa: F401
    import torch

    (torch.ones(4, device="cpu" if kind == "cpu" else "cuda") + 1).sum().item()
    taken = time.perf_counter() - began
    from . import torch_models

    torch.manual_seed(0)
    return torch_models, {"start": taken}


class Measurements:
    """What a process of one kind can measure."""

    def __init__(self, kind: str, models: Any) -> None:
        import torch

        self.torch, self.models = torch, models
        self.device = "cpu" if kind == "cpu" else "cuda"
        self.steps: dict[str, Callable[[], Any]] = {}

    def synchronize(self) -> None:
        """Wait for everything enqueued."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def per_call(self, call: Callable[[], Any]) -> float:
        """Return the microseconds of a call within a batch; what it enqueued is not waited for."""
        taken = []
        for _ in range(BATCHES):
            began = time.perf_counter()
            for _ in range(CALLS):
                call()
            taken.append((time.perf_counter() - began) / CALLS * 1e6)
            self.synchronize()
        return statistics.median(taken[2:])

    def add(self) -> Figures:
        """Time the sum of two small tensors, as it is and with a graph for its gradient."""
        torch = self.torch
        a, b = torch.ones(16, 16, device=self.device), torch.ones(16, 16, device=self.device)
        weight = torch.ones(16, 16, device=self.device, requires_grad=True)
        return {"add": self.per_call(lambda: torch.add(a, b)), "add_grad": self.per_call(lambda: torch.add(a, weight))}

    def mix(self) -> Figures:
        """Time small operators of many kinds."""
        call, count = self.models.mixed_operators(self.device)
        return {"mix": self.per_call(call) / count}

    def fresh(self) -> Figures:
        """Time an operator on tensors of sizes that it has not seen."""
        torch = self.torch
        base = torch.ones(40_000, device=self.device)
        self.sizes = getattr(self, "sizes", 0) + 1000
        tensors = [base[: self.sizes + i] for i in range(300)]
        began = time.perf_counter()
        for tensor in tensors:
            torch.neg(tensor)
        taken = time.perf_counter() - began
        self.synchronize()
        return {"fresh": taken / len(tensors) * 1e6}

    def step(self, name: str) -> Figures:
        """Time one training step with its completion, and the part of it that the host takes."""
        if name not in self.steps:
            self.steps[name] = getattr(self.models, f"{name}_step")(self.device)
            for _ in range(3):
                self.steps[name]()
        call = self.steps[name]
        self.synchronize()
        began = time.perf_counter()
        call()
        host = time.perf_counter() - began
        self.synchronize()
        return {f"{name}_host": host * 1e3, name: (time.perf_counter() - began) * 1e3}

    def resnet(self) -> Figures:
        """Time a step of ResNet-18."""
        return self.step("resnet")

    def transformer(self) -> Figures:
        """Time a step of the transformer."""
        return self.step("transformer")

    def small(self) -> Figures:
        """Time 100 steps of a small model, in the milliseconds of one."""
        if "small" not in self.steps:
            self.steps["small"] = self.models.small_step(self.device)
            self.steps["small"]()
        call = self.steps["small"]
        self.synchronize()
        began = time.perf_counter()
        for _ in range(100):
            call()
        self.synchronize()
        return {"small": (time.perf_counter() - began) * 10}

    def prefetch(self) -> Figures:
        """Time the loops that fetch ahead, in the milliseconds of one step."""
        if self.device == "cpu":
            return {}
        one, two = self.models.prefetching(False, 20), self.models.prefetching(True, 20)
        return {"prefetch_one": one * 50, "prefetch_two": two * 50, "prefetch": two / one}

    def memory(self) -> Figures:
        """Note the resident memory after 1,000 small steps, and what steps add later; count what was remembered."""
        before = self.counted()
        call = self.models.small_step(self.device)

        def run(count: int) -> int:
            for _ in range(count):
                loss = call()
            loss.item()
            return resident()

        first = run(SMALL_STEPS)
        after = self.counted()
        filled = run(7 * SMALL_STEPS)
        figures = {"memory": first / 2**20, "growth": (run(4 * SMALL_STEPS) - filled) / 2**20}
        if after:
            hits, misses = (after[k] - before[k] for k in ("metadata_hits", "metadata_misses"))
            figures["hits"] = 100 * hits / (hits + misses)
        return figures

    def counted(self) -> dict[str, int]:
        """Return the module's counters, none for plain torch."""
        if self.device == "cpu":
            return {}
        found: dict[str, int] = sys.modules["halstream_torch_device"].counters()
        return found


def main(kind: str) -> None:
    """Measure what the lines of the standard input name, until it ends."""
    kind, _, only_memory = kind.partition("-")
    models, figures = started(kind)
    scope: Any = contextlib.nullcontext()
    if kind == "sanitized":
        import halstream

        scope = halstream.sanitize(on="raise")
    with scope:
        measurements = Measurements(kind, models)
        if only_memory:
            figures.update(measurements.memory())
        print(json.dumps(figures), flush=True)
        for line in sys.stdin:
            with quiet():
                print(json.dumps(getattr(measurements, line.strip())()), flush=True)
    measurements.synchronize()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main(sys.argv[1])
