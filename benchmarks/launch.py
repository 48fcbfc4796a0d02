"""What a kernel launch costs in steady state, and which part of it costs what.

Usage: python -m benchmarks.launch [--backend host|cuda] [--library LIBRARY] [--output FILE]

With ``--backend cuda`` (the default) the library is the look-alike driver unless
another one is named; there the driver's share is that of an imitation. Nothing
is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import timeit
from pathlib import Path
from typing import Any

from .calls import FAKE
from .gpu.ptx import FILL, WORDS
from .report import aligned

ROUNDS, BATCH = 31, 200  # a batch fits every launch queue
NODES = 100  # of a graph

#: Title -> statement.
LAUNCHES = {
    "launch: an Array, two int": "s.launch(k, 1, WORDS, x, 7, WORDS)",
    "the same, sizes as tuples": "s.launch(k, (1, 1, 1), (WORDS, 1, 1), x, 7, WORDS)",
    "the same, NumPy scalars": "s.launch(k, 1, WORDS, x, v, n)",
    "the same, pinned memory": "s.launch(k, 1, WORDS, pinned, 7, WORDS)",
    "an empty operation": "s.nop()",
}
#: Parts of a launch on a device.
PARTS = {
    "part: checked and packed": "pack((x, 7, WORDS))",
    "part: the extension and the driver": "enqueue(s._id, function, modes, size, cells)",
}


def nothing(grid: Any, block: Any, x: Any, v: Any, n: Any) -> None:
    """Stand for the kernel on the host device: the launch is what is measured."""


def names() -> dict[str, Any]:
    """Return what the statements use."""
    import halstream as hs
    import numpy as np

    kernel = hs.Kernel(FILL, nothing, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    kernel.load()  # a driver may wait for streams that are held
    env = {"s": hs.Stream(), "k": kernel, "WORDS": WORDS, "v": np.uint32(7), "n": np.uint32(WORDS)}
    return {**env, "x": hs.empty(WORDS, "uint32"), "pinned": hs.pinned_empty(WORDS, "uint32")}


def parts(env: dict[str, Any]) -> dict[str, Any]:
    """Return what the statements of `PARTS` use, once the kernel was launched."""
    from halstream._kernel import _launch
    from halstream._kernel._packing import shape_of

    kernel = env["k"]
    pack, shape = kernel._packer.pack, shape_of(kernel.name, 1, WORDS)
    own = {"pack": pack, "enqueue": _launch._enqueue, "function": kernel._loaded[0].function}
    return {**env, **own, "size": shape.packed, "cells": pack((env["x"], 7, WORDS)), "modes": kernel._packer.modes}


def measured(statement: str, env: dict[str, Any]) -> dict[str, float]:
    """Return the median and the best of some batches, µs for each execution.

    The stream is held meanwhile: whoever runs the kernels is not woken and takes no processor.
    """
    from halstream.testing import Gate

    timer = timeit.Timer(statement, globals=env)
    times = []
    for _ in range(ROUNDS):
        with Gate(env["s"]):
            times.append(timer.timeit(BATCH) / BATCH * 1e6)
        env["s"].synchronize(timeout=10)
    return {"median": statistics.median(times), "best": min(times)}


def captured(env: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return what each launch takes in a capture of some, which calls from as many lines, and then to instantiate."""
    import halstream as hs

    source = "def work():\n" + "\n".join(f"    s.launch(k, 1, WORDS, x, {i}, WORDS)" for i in range(NODES))
    exec(source, env)
    times: dict[str, list[float]] = {"captured": [], "a node of an instantiate": []}
    for _ in range(10 * ROUNDS):  # CPython makes a function fast that was called some times
        began = time.perf_counter()
        with hs.capture(env["s"]) as graph:
            env["work"]()
        ended = time.perf_counter()
        run = graph.instantiate()
        times["captured"].append(ended - began)
        times["a node of an instantiate"].append(time.perf_counter() - ended)
        run.close()
        graph.close()
    each = {title: [t / NODES * 1e6 for t in row] for title, row in times.items()}
    return {title: {"median": statistics.median(row), "best": min(row)} for title, row in each.items()}


def main() -> int:
    """Measure, store, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launch", description=__doc__.split("\n\n")[0])
    parser.add_argument("--backend", default="cuda", choices=("host", "cuda"))
    parser.add_argument("--library", default=str(FAKE), help="driver library (default: the look-alike)")
    parser.add_argument("--output", type=Path, help="where the figures go")
    options = parser.parse_args()
    os.environ["HALSTREAM_BACKEND"] = options.backend
    os.environ["HALSTREAM_CUDA_LIBRARY"] = options.library
    env = names()
    found = {title: measured(statement, env) for title, statement in LAUNCHES.items()}
    if options.backend == "cuda":
        inner = parts(env)
        found |= captured(inner)
        found |= {title: measured(statement, inner) for title, statement in PARTS.items()}
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    lines = [["µs", "median", "best"]]
    lines += [[title, f"{row['median']:.2f}", f"{row['best']:.2f}"] for title, row in found.items()]
    print(aligned(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
