"""halstream's sides: the core and the dialects, as a program writes them."""

from __future__ import annotations

from typing import Any

from . import graphs
from .ptx import FILL, WORDS
from .sides import COPIES, Side, Sync


def torch() -> Side:
    """halstream with torch's names."""
    import halstream as hs
    from halstream.torch import cuda

    s, s2 = cuda.Stream(), cuda.Stream()
    side = Side("halstream.torch", "torch", hs.__version__, {"cuda": cuda, "s": s, "s2": s2, "e": s.record_event()})
    side.add(record="e.record(s)", query="e.query()", record_none="s.record_event()", event="cuda.Event()")
    side.add(event_used="cuda.Event().record(s)", stream="cuda.Stream()", sync="s.synchronize()")
    side.add(**{"with": "with cuda.stream(s): pass", "current": "cuda.current_stream()"})
    side.add("s2.synchronize()", wait="s2.wait_event(e)", wait_stream="s2.wait_stream(s)")
    side.part("copy", lambda: copies(side))
    side.part("graph", lambda: graphs.own_torch(side))
    return side


def cupy() -> Side:
    """halstream with cupy's names."""
    import halstream as hs
    from halstream.cupy import cuda

    s, s2 = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    env = {"cuda": cuda, "s": s, "s2": s2, "e": s.record(), "f": Sync()}
    side = Side("halstream.cupy", "cupy", hs.__version__, env)
    side.add(record="s.record(e)", query="e.done", record_none="s.record()", event="cuda.Event()")
    side.add(event_used="s.record(cuda.Event())", stream="cuda.Stream(non_blocking=True)", sync="s.synchronize()")
    side.add(**{"with": "with s: pass", "current": "cuda.get_current_stream()"})
    side.add("s2.synchronize()", wait="s2.wait_event(e)")
    side.add(host="s.launch_host_func(f, None); s.synchronize()")
    side.part("copy", lambda: pointers(side, cuda))
    side.part("graph", lambda: graphs.cupy_like(side))
    return side


def core() -> Side:
    """halstream's own names."""
    import halstream as hs

    s, s2 = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    side = Side("halstream", "core", hs.__version__, {"hs": hs, "s": s, "s2": s2, "e": s.record(), "f": Sync()})
    side.add(record="s.record(e)", query="e.query()", record_none="s.record()", event="hs.Event(device=0)")
    side.add(
        event_used="s.record(hs.Event(device=0))",
        stream="hs.Stream(non_blocking=True)",
        sync="s.synchronize()",
    )
    side.add(**{"with": "with s: pass"})
    side.add("s2.synchronize()", wait="s2.wait(e)", wait_stream="s2.wait(s)")
    side.add(host="s.call(f); s.synchronize()")
    side.part("copy", lambda: copies(side))
    side.part("kernel", lambda: kernel(side))
    side.part("graph", lambda: graphs.own_core(side))
    return side


def copies(side: Side) -> None:
    """Add copies between halstream's arrays."""
    import halstream as hs

    for row, count in COPIES.items():
        side.env[f"d_{row}"] = hs.empty(count, "uint8")
        side.env[f"h_{row}"] = hs.pinned_empty(count, "uint8")
        side.add(**{row: f"d_{row}.copy_from(h_{row}, s); s.synchronize()"})


def pointers(side: Side, cuda: Any) -> None:
    """Add copies between memory as cupy has it, the package's or the dialect's."""
    for row, count in COPIES.items():
        side.env[f"d_{row}"] = cuda.alloc(count)
        side.env[f"m_{row}"] = cuda.alloc_pinned_memory(count)
        side.env[f"h_{row}"] = side.env[f"m_{row}"].ptr
        side.add(**{row: f"d_{row}.copy_from_host_async(c_void_p(h_{row}), {count}, s); s.synchronize()"})
    from ctypes import c_void_p

    side.env["c_void_p"] = c_void_p


def kernel(side: Side) -> None:
    """Add the launch of a kernel."""
    import halstream as hs

    signature = "out uint32 *x, uint32 v, uint32 n"
    side.env["k"] = hs.Kernel(FILL, name="fill_u32", signature=signature)
    side.env["x"] = hs.empty(WORDS, "uint32")
    statement = f"s.launch(k, 1, {WORDS}, x, 7, {WORDS})"
    exec(statement, side.env)
    side.env["s"].synchronize()
    side.add(kernel=statement)
