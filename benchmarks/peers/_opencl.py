"""The rows in OpenCL's words, for every OpenCL runtime.

An in-order command queue is a stream, an event is an event. The empty
operation is a marker or a kernel that does nothing; a record is a marker.
Where there are two ways the report takes the faster, which is the harder
comparison: Intel's runtime completes a marker on an idle queue in the calling
thread; only kernels go to a worker.
"""

from __future__ import annotations

from typing import Any

from ..measure import SIZES, Sheet
from ._opencl_graph import launcher

MARKER, KERNEL = "marker", "empty kernel"


def measure(sheet: Sheet) -> None:
    """Measure the rows that have an equivalent."""
    import pyopencl as cl  # type: ignore[import-not-found]

    platform = cl.get_platforms()[0]
    device = platform.get_devices()[0]
    sheet.info |= {"platform": platform.version, "device": device.name, "pyopencl": cl.VERSION_TEXT}
    context = cl.Context([device])
    queues = [cl.CommandQueue(context) for _ in range(8)]
    q, q2 = queues[:2]
    env: dict[str, Any] = {"cl": cl, "mark": cl.enqueue_marker, "q": q, "q2": q2}
    env["event"] = cl.enqueue_marker(q)
    q.finish()

    gate = cl.UserEvent(context)
    cl.enqueue_marker(q, wait_for=[gate])
    sheet.pending(lambda n: fill(cl, [q], n, wait=False), lambda: open_gate(cl, gate, q), 10_000)
    for row in ("record", "nop"):
        # Within a batch the queue is not idle; one by one, after finish(), it is.
        sheet.batch(row, "mark(q)", env, "q.finish()", MARKER)
        sheet.single(row, "mark(q)", env, "q.finish()", f"{MARKER}, idle")
    sheet.batch("query", "event.command_execution_status", env)
    sheet.batch("sync_idle", "q.finish()", env)
    sheet.round_trip("mark(q); q.finish()", env, way=f"{MARKER}, finish")
    sheet.round_trip("mark(q).wait()", env, way=f"{MARKER}, wait")
    sheet.idle_cpu("mark(q); q.finish()", env)
    sheet.single("handoff", "e = mark(q); q.flush()\nwhile e.command_execution_status: pass", env)
    # The marker is the operation and the event.
    sheet.single("cross", "e = mark(q); q.flush(); mark(q2, wait_for=[e]); q2.finish()", env)
    sheet.hops(lambda n: hops(cl, q, q2, n))
    # The nearest to a function in stream order; the queue does not wait for it.
    sheet.rate("functions_rate", lambda n: callbacks(cl, q, n), 500)
    sheet.delay(lambda f: callback(cl, q, f), lambda: settle(q))
    sheet.rate("stream1_rate", lambda n: fill(cl, [q], n), 20_000)
    sheet.rate("streams8_rate", lambda n: fill(cl, queues, n // 8), 16_000)
    with sheet.attempt("nop"):
        kernel = cl.Program(context, "kernel void nop() {}").build().nop
        env |= {"run": cl.enqueue_nd_range_kernel, "kernel": kernel}
        sheet.batch("nop", "run(q, kernel, (1,), (1,))", env, "q.finish()", KERNEL)
        sheet.single("nop", "run(q, kernel, (1,), (1,))", env, "q.finish()", f"{KERNEL}, idle")
        sheet.round_trip("run(q, kernel, (1,), (1,)); q.finish()", env, way=KERNEL, count=500)
        sheet.single("native", "run(q, kernel, (1,), (1,)); q.finish()", env, "q.finish()", count=1000)
    with sheet.attempt("graph_native"):
        env["launch"] = launcher(cl, device, q, kernel)
        sheet.single("graph_native", "launch(); q.finish()", env, "q.finish()")
    memory(sheet, cl, context, q)


def memory(sheet: Sheet, cl: Any, context: Any, q: Any) -> None:
    """Measure copies: from memory that the runtime allocated, between buffers and from its mapping."""
    import numpy as np

    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    for name, size in {"1k": 1024, **SIZES}.items():
        with sheet.attempt(f"copy_{name}"):
            source, target = (cl.Buffer(context, flags, size) for _ in range(2))
            mapped, _ = cl.enqueue_map_buffer(q, source, cl.map_flags.WRITE, 0, (size,), np.uint8)
            mapped[:] = 1
            cl.enqueue_copy(q, target, mapped, is_blocking=True)
            env = {"cl": cl, "q": q, "copy": cl.enqueue_copy, "here": mapped, "a": source, "b": target}
            ways = {"buffer": "copy(q, b, a)", "mapped": "copy(q, b, here, is_blocking=False)"}
            for way, statement in ways.items():
                if size == 1024:
                    sheet.batch("copy_1k", statement, env, "q.finish()", way)
                    continue
                sheet.copies(name, f"{statement}; q.finish()", env, "q.finish()", f"{statement}; q.flush()", way=way)


pending: list[Any] = []


def callback(cl: Any, q: Any, function: Any) -> None:
    """Have OpenCL call a Python function when a marker is complete."""
    event = cl.enqueue_marker(q)
    left: list[None] = []
    pending.append(left)

    def run(status: int) -> None:
        function()
        left.append(None)

    event.set_callback(cl.command_execution_status.COMPLETE, run)


def settle(q: Any) -> None:
    """Wait until every callback has run."""
    import time

    q.finish()
    while pending:
        if pending[0]:
            pending.pop(0)
        else:
            time.sleep(0)  # callbacks need the GIL


def callbacks(cl: Any, q: Any, count: int) -> None:
    """Have `count` functions called, and wait for them."""
    for _ in range(count):
        callback(cl, q, int)
    settle(q)


def hops(cl: Any, q: Any, q2: Any, count: int) -> None:
    """Submit a chain of markers that alternate between two queues; wait for the last."""
    mark, here, there = cl.enqueue_marker, q, q2
    event = mark(here)
    for _ in range(count):
        here, there = there, here
        event = mark(here, wait_for=[event])
    q.flush()
    q2.flush()
    here.finish()
    there.finish()


def fill(cl: Any, queues: list[Any], count: int, wait: bool = True) -> None:
    """Enqueue `count` markers on each queue in turn."""
    mark = cl.enqueue_marker
    for _ in range(count):
        for q in queues:
            mark(q)
    if wait:
        for q in queues:
            q.flush()
        for q in queues:
            q.finish()


def open_gate(cl: Any, gate: Any, q: Any) -> None:
    """Let the queue go on, and wait for it."""
    gate.set_status(cl.command_execution_status.COMPLETE)
    q.finish()
