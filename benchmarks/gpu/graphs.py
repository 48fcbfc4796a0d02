"""The rows of graphs: what a capture and a launch cost, of fills and of kernels."""

from __future__ import annotations

from .ptx import WORDS
from .sides import Case, Side

NODES = 100


def add(
    side: Side,
    fill: str,
    how: tuple[str, str],
    launch: str,
    kernel: str = "",
    current: str = "",
    sync: str = "s.synchronize()",
) -> None:
    """Add the rows of a side.

    `fill` enqueues a fill of the memory x, `kernel` a kernel. `how` is what begins
    a capture and what ends it with an executable g. `current` makes the stream s
    current, where a side needs that, and "None" in its place undoes it. `sync` waits
    for the stream after a batch.
    """
    begin, end = how
    before = current.format("s") if current else "pass"
    after = f"{sync}; {current.format('None')}" if current else sync
    for kind, each in (("fills", fill), ("kernels", kernel)):
        if not each:
            continue
        source = f"def capture_{kind}(count):\n  {begin}\n  for _ in range(count): {each}\n  {end}\n  return g"
        exec(source, side.env)
        exec(f"{before}\nmany_{kind} = capture_{kind}({NODES})\none_{kind} = capture_{kind}(1)\n{after}", side.env)
        rows = {
            f"capture_{kind}": f"capture_{kind}({NODES})",
            f"one_{kind}": launch.format(f"one_{kind}"),
            f"many_{kind}": launch.format(f"many_{kind}"),
        }
        side.cases |= {row: Case(statement, before, after) for row, statement in rows.items()}


def own_core(side: Side) -> None:
    """halstream's own names."""
    import halstream as hs

    side.env["x"] = hs.empty(WORDS, "uint32")
    kernel = f"s.launch(k, 1, {WORDS}, x, 7, {WORDS})" if "k" in side.env else ""
    how = "c = hs.capture(s, 'relaxed'); g = c.__enter__()", "c.__exit__(None, None, None); g = g.instantiate()"
    add(side, "x.fill(0, s)", how, "{}.launch(s)", kernel)


def own_torch(side: Side) -> None:
    """halstream with torch's names: the arrays are the core's."""
    import halstream as hs

    side.env["x"] = hs.empty(WORDS, "uint32")
    torch_like(side, "x.fill(0)", "cuda.set_stream({} or cuda.default_stream())")


def torch(side: Side) -> None:
    """PyTorch."""
    import torch

    side.env["x"] = torch.empty(WORDS, dtype=torch.int32, device="cuda")
    torch_like(side, "x.zero_()", "cuda.set_stream({} or cuda.default_stream())")


def torch_like(side: Side, fill: str, current: str) -> None:
    """Add the rows by ``CUDAGraph``."""
    how = "g = cuda.CUDAGraph(); g.capture_begin(capture_error_mode='relaxed')", "g.capture_end()"
    add(side, fill, how, "{}.replay()", current=current)


def cupy_like(side: Side, kernel: str = "") -> None:
    """Add the rows by cupy's captures, the package's or the dialect's."""
    side.env["m"] = side.env["cuda"].alloc(4 * WORDS)
    how = "s.begin_capture()", "g = s.end_capture()"
    add(side, f"m.memset_async(0, {4 * WORDS}, s)", how, "{}.launch(s)", kernel, "({} or cuda.Stream.null).use()")


def cuda_core(side: Side) -> None:
    """cuda.core, which builds graphs by a builder in the place of a stream."""
    how = "b = s.create_graph_builder(); b.begin_building('relaxed')", "g = b.end_building().complete()"
    add(side, "", how, "{}.launch(s)", "launch(b, shape, k, x, v, n)", sync="s.sync()")
