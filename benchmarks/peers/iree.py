"""IREE's local-task device: timeline semaphores, a task system with a thread pool.

A stream is a timeline: each submission waits for its last point and signals the next. The empty operation, and the
record, is a command buffer without commands; the bindings have no cheaper one.
"""

from __future__ import annotations

from typing import Any

from ..measure import Sheet
from ..peer import Peer

PEER = Peer("iree", "IREE", "iree.runtime", ("iree-base-runtime==3.13.0",))


class Stream:
    """A timeline on the device."""

    def __init__(self, device: Any, nothing: Any) -> None:
        self.execute = device.queue_execute
        self.nothing = nothing
        self.timeline = device.create_semaphore(0)
        self.point = 0

    def nop(self) -> None:
        """Submit the empty command buffer."""
        point = self.point
        self.point = point + 1
        self.execute(self.nothing, [(self.timeline, point)], [(self.timeline, point + 1)])

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

    device = rt.get_device("local-task")
    nothing = rt.HalCommandBuffer(device)
    nothing.end()
    s, s2 = Stream(device, nothing), Stream(device, nothing)
    env: dict[str, Any] = {"s": s, "s2": s2, "timeline": s.timeline}
    sheet.batch("record", "s.nop()", env, "s.synchronize()", most=500)
    sheet.batch("query", "timeline.query()", env)
    sheet.single("round_trip", "s.nop(); s.synchronize()", env)
    sheet.single("cross", "s.nop(); s2.after(timeline, s.point); s2.synchronize()", env)
