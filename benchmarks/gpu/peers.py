"""The peers' sides: packages that are not halstream's and are not installed by it."""

from __future__ import annotations

import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from . import graphs
from .own import pointers
from .ptx import FILL, WORDS
from .sides import COPIES, Case, Side, Sync


def torch() -> Side:
    """PyTorch."""
    import torch
    from torch import cuda

    cuda.init()
    s, s2 = cuda.Stream(), cuda.Stream()
    side = Side("torch", "torch", torch.__version__, {"cuda": cuda, "s": s, "s2": s2, "e": s.record_event()})
    side.add(record="e.record(s)", query="e.query()", record_none="s.record_event()", event="cuda.Event()")
    side.add(event_used="cuda.Event().record(s)", stream="cuda.Stream()", sync="s.synchronize()")
    side.add(**{"with": "with cuda.stream(s): pass", "current": "cuda.current_stream()"})
    side.add("s2.synchronize()", wait="s2.wait_event(e)", wait_stream="s2.wait_stream(s)")

    def copies() -> None:
        for row, count in COPIES.items():
            side.env[f"d_{row}"] = torch.empty(count, dtype=torch.uint8, device="cuda")
            side.env[f"h_{row}"] = torch.empty(count, dtype=torch.uint8, pin_memory=True)
            statement = f"d_{row}.copy_(h_{row}, non_blocking=True); s.synchronize()"
            side.cases[row] = Case(statement, "cuda.set_stream(s)", "cuda.set_stream(cuda.default_stream())")

    side.part("copy", copies)
    side.part("graph", lambda: graphs.torch(side))
    return side


def cupy() -> Side:
    """CuPy."""
    import cupy
    from cupy import cuda

    s, s2 = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    env = {"cuda": cuda, "s": s, "s2": s2, "e": s.record(), "f": Sync()}
    side = Side("cupy", "cupy", cupy.__version__, env)
    side.add(record="s.record(e)", query="e.done", record_none="s.record()", event="cuda.Event()")
    side.add(event_used="s.record(cuda.Event())", stream="cuda.Stream(non_blocking=True)", sync="s.synchronize()")
    side.add(**{"with": "with s: pass", "current": "cuda.get_current_stream()"})
    side.add("s2.synchronize()", wait="s2.wait_event(e)")
    side.add(host="s.launch_host_func(f, None); s.synchronize()")
    side.part("copy", lambda: pointers(side, cuda))

    def kernel() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fill.ptx"
            path.write_text(FILL)
            module = cupy.RawModule(path=str(path))
            side.env["k"] = module.get_function("fill_u32")
        side.env |= {"x": cupy.empty(WORDS, "uint32"), "v": cupy.uint32(7), "n": cupy.uint32(WORDS)}
        statement = f"k((1,), ({WORDS},), (x, v, n))"
        exec(statement, side.env)
        side.cases["kernel"] = Case(statement, "s.use()", "s.synchronize(); cuda.Stream.null.use()")

    side.part("kernel", kernel)
    launched = side.cases["kernel"].statement if "kernel" in side.cases else ""
    side.part("graph", lambda: graphs.cupy_like(side, launched))
    return side


def cuda_core() -> Side:
    """cuda.core."""
    from cuda import core

    if not hasattr(core, "Device"):  # before 0.5
        from cuda.core import experimental as core
    device = core.Device(0)
    device.set_current()
    s, s2 = device.create_stream(), device.create_stream()
    env = {"device": device, "s": s, "s2": s2, "e": s.record()}
    side = Side("cuda.core", "core", metadata.version("cuda-core"), env)
    side.add("s.sync()", record="s.record(e)", query="e.is_done", record_none="s.record()")
    side.add("s.sync()", event="device.create_event()", event_used="s.record(device.create_event())")
    side.add("s.sync()", stream="device.create_stream()", sync="s.sync()")
    side.add("s2.sync()", wait="s2.wait(e)", wait_stream="s2.wait(s)")

    def copies() -> None:
        pinned = core.LegacyPinnedMemoryResource()
        for row, count in COPIES.items():
            side.env[f"d_{row}"] = device.allocate(count, stream=s)
            side.env[f"h_{row}"] = pinned.allocate(count)
            side.add("s.sync()", **{row: f"d_{row}.copy_from(h_{row}, stream=s); s.sync()"})

    def kernel() -> None:
        import numpy as np

        found = core.ObjectCode.from_ptx(FILL.encode()).get_kernel("fill_u32")
        x = device.allocate(4 * WORDS, stream=s)
        more: dict[str, Any] = {"launch": core.launch, "k": found, "x": x}
        side.env |= more | {
            "shape": core.LaunchConfig(grid=1, block=WORDS),
            "v": np.uint32(7),
            "n": np.uint32(WORDS),
        }
        exec("launch(s, shape, k, x, v, n)", side.env)
        side.add("s.sync()", kernel="launch(s, shape, k, x, v, n)")

    side.part("copy", copies)
    side.part("kernel", kernel)
    side.part("graph", lambda: graphs.cuda_core(side))
    return side


def numba() -> Side:
    """numba-cuda."""
    from numba import cuda

    s, s2, e = cuda.stream(), cuda.stream(), cuda.event(timing=False)
    e.record(s)
    env = {"cuda": cuda, "s": s, "s2": s2, "e": e, "f": Sync()}
    side = Side("numba.cuda", "core", metadata.version("numba-cuda"), env)
    side.add(record="e.record(s)", query="e.query()", event="cuda.event(timing=False)", stream="cuda.stream()")
    side.add(event_used="cuda.event(timing=False).record(s)", sync="s.synchronize()")
    side.add("s2.synchronize()", wait="e.wait(s2)")
    side.add(host="s.add_callback(f); s.synchronize()")

    def copies() -> None:
        for row, count in COPIES.items():
            side.env[f"d_{row}"] = cuda.device_array(count, "uint8")
            side.env[f"h_{row}"] = cuda.pinned_array(count, "uint8")
            side.add(**{row: f"d_{row}.copy_to_device(h_{row}, stream=s); s.synchronize()"})

    def kernel() -> None:
        import numpy as np

        def fill(x: Any, v: Any, n: Any) -> None:
            index = cuda.grid(1)
            if index < n:
                x[index] = v

        launcher = cuda.jit(fill)
        side.env |= {"k": launcher[1, WORDS, s], "x": cuda.device_array(WORDS, "uint32")}
        side.env |= {"v": np.uint32(7), "n": np.uint32(WORDS)}
        exec("k(x, v, n)", side.env)
        side.add(kernel="k(x, v, n)")

    side.part("copy", copies)
    side.part("kernel", kernel)
    return side
