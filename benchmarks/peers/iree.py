"""IREE's local-task device: timeline semaphores, a task system with a thread pool.

A stream is a timeline: each submission waits for its last point and signals
the next. The empty operation, and the record, is a command buffer without
commands; the bindings have no cheaper one.
"""

from __future__ import annotations

from typing import Any

from ..measure import SIZES, Sheet
from ..peer import Peer

PEER = Peer("iree", "IREE", "iree.runtime", ("iree-base-runtime==3.13.0",))


class Stream:
    """A timeline on the device."""

    def __init__(self, device: Any, nothing: Any) -> None:
        self.device = device
        self.execute = device.queue_execute
        self.nothing = nothing
        self.timeline = device.create_semaphore(0)
        self.point = 0

    def nop(self) -> None:
        """Submit the empty command buffer."""
        self.submit(self.nothing)

    def submit(self, commands: Any) -> None:
        """Submit a command buffer."""
        point = self.point
        self.point = point + 1
        self.execute(commands, [(self.timeline, point)], [(self.timeline, point + 1)])

    def copy(self, source: Any, target: Any) -> None:
        """Submit a copy between buffers."""
        point = self.point
        self.point = point + 1
        self.device.queue_copy(source, target, [(self.timeline, point)], [(self.timeline, point + 1)])

    def after(self, semaphore: Any, value: int) -> None:
        """Submit it to run when another timeline has reached a point."""
        point = self.point
        self.point = point + 1
        self.execute(self.nothing, [(self.timeline, point), (semaphore, value)], [(self.timeline, point + 1)])

    def synchronize(self) -> None:
        """Wait for the last point."""
        self.timeline.wait(self.point)


def measure(sheet: Sheet) -> None:
    """Measure the rows that have an equivalent."""
    import iree.runtime as rt  # type: ignore[import-not-found]
    import numpy as np

    device = rt.get_device("local-task")
    nothing = rt.HalCommandBuffer(device)
    nothing.end()
    streams = [Stream(device, nothing) for _ in range(8)]
    s, s2 = streams[:2]
    env: dict[str, Any] = {"s": s, "s2": s2, "timeline": s.timeline}
    gate = device.create_semaphore(0)
    s.after(gate, 1)

    def release() -> None:
        gate.signal(1)
        s.synchronize()

    sheet.pending(lambda n: pile(s, n), release, 2000)
    for row in ("record", "nop"):
        sheet.batch(row, "s.nop()", env, "s.synchronize()", most=500)
        sheet.single(row, "s.nop()", env, "s.synchronize()", "idle")
    env |= {"fence": rt.HalFence.create_at, "new": device.create_semaphore}
    sheet.batch("record_new", "fence(timeline, s.point)", env, way="fence")
    sheet.batch("record_new", "new(0)", env, way="semaphore")
    sheet.batch("query", "timeline.query()", env)
    sheet.batch("sync_idle", "s.synchronize()", env)
    sheet.round_trip("s.nop(); s.synchronize()", env)
    sheet.idle_cpu("s.nop(); s.synchronize()", env)
    sheet.single("handoff", "s.nop()\nwhile timeline.query() < s.point: pass", env)
    sheet.single("cross", "s.nop(); s2.after(timeline, s.point); s2.synchronize()", env)
    sheet.hops(lambda n: hops(s, s2, n), rounds=3)
    with sheet.attempt("graph_native"):
        # Fills of a word, without order: the bindings can record neither functions nor barriers.
        kind, usage = rt.MemoryType.DEVICE_LOCAL | rt.MemoryType.HOST_VISIBLE, rt.BufferUsage.DEFAULT
        word = device.allocator.allocate_buffer(kind, usage, 4)
        commands = rt.HalCommandBuffer(device)
        for _ in range(20):
            commands.fill(word, np.uint32(1), 0, 4)
        commands.end()
        env["launch"] = lambda: s.submit(commands)
        sheet.single("graph_native", "launch(); s.synchronize()", env, "s.synchronize()", "fills")
    sheet.rate("stream1_rate", lambda n: fill(streams[:1], n), 20_000)
    sheet.rate("streams8_rate", lambda n: fill(streams, n // 8), 4000)
    for name, size in {"1k": 1024, **SIZES}.items():
        with sheet.attempt(f"copy_{name}"):
            kind, usage = rt.MemoryType.DEVICE_LOCAL | rt.MemoryType.HOST_VISIBLE, rt.BufferUsage.DEFAULT
            source, target = (device.allocator.allocate_buffer(kind, usage, size) for _ in range(2))
            env["copy"] = lambda a=source, b=target: s.copy(a, b)
            env["copy"]()
            s.synchronize()
            if size == 1024:
                sheet.batch("copy_1k", "copy()", env, "s.synchronize()", most=500)
                continue
            sheet.copies(name, "copy(); s.synchronize()", env, "s.synchronize()", "copy()")


def hops(s: Stream, s2: Stream, count: int) -> None:
    """Submit a chain that alternates between two timelines; wait for its end."""
    here, there = s, s2
    for _ in range(count):
        there.after(here.timeline, here.point)
        here, there = there, here
    here.synchronize()


def pile(s: Stream, count: int) -> None:
    """Submit `count` empty operations."""
    for _ in range(count):
        s.nop()


def fill(streams: list[Stream], count: int) -> None:
    """Submit `count` empty operations on each stream in turn, and wait for all."""
    for _ in range(count):
        for s in streams:
            s.nop()
    for s in streams:
        s.synchronize()
