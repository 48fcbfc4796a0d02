"""Programs that never end, and whom they wait for.

Each function blocks the calling thread for ever, where nothing ends such a wait;
after it `release` lets go on what still waits. They are to be run on the main
thread, or on the only one that is not blocked in the runtime.
"""

from __future__ import annotations

import threading

import halstream as hs
from halstream.torch import cuda

from . import _stuck_acl as ascend
from . import _stuck_functions as functions
from . import _stuck_host as host
from . import _stuck_mixed as mixed
from ._host import LIMIT
from ._stuck_help import Stuck, hold, later, release

__all__ = ["STUCK", "WATCHED", "Stuck", "release"]


def closed_gate() -> None:
    """The host waits for a stream whose gate nobody opens."""
    stream = hs.Stream()
    hold(stream)
    stream.nop()
    stream.synchronize()


def event_behind_gate() -> None:
    """The host waits for an event that lies behind a gate."""
    stream = cuda.Stream()
    hold(stream)
    stream.record_event().synchronize()


def device_with_gate() -> None:
    """The host waits for a device, on which one stream is held."""
    streams = [hs.Stream() for _ in range(3)]
    hold(streams[1])
    for stream in streams:
        stream.nop()
    hs.synchronize()


def across_streams() -> None:
    """The host waits for a stream that waits for a stream that waits for one that is held."""
    first, second, third = cuda.Stream(), cuda.Stream(), cuda.Stream()
    hold(first)
    second.wait_stream(first)
    third.wait_event(second.record_event())
    third.synchronize()


def legacy_order() -> None:
    """Work on the legacy default stream waits for a stream that is ordered with it, and held."""
    held = hs.Stream()
    hold(held)
    default = cuda.default_stream()
    default.nop()
    default.synchronize()


def second_host_thread() -> None:
    """Two threads of the host wait, each for a stream that is held."""
    mine, its = hs.Stream(), hs.Stream()
    hold(mine)
    hold(its)

    def wait() -> None:
        try:
            its.synchronize()
        except hs.StallError:
            return  # told to both, and one is enough

    other = threading.Thread(target=wait, name="second host thread")
    later.append(lambda: other.join(LIMIT))
    other.start()
    mine.synchronize()


STUCK: tuple[Stuck, ...] = (
    Stuck("closed_gate", closed_gate, ("waits for stream", "gate", "closed")),
    Stuck("event_behind_gate", event_behind_gate, ("waits for stream", "gate", "closed")),
    Stuck("device_with_gate", device_with_gate, ("waits for stream", "gate", "closed")),
    Stuck("across_streams", across_streams, ("stream", "wait for event", "stream", "wait", "stream", "gate")),
    Stuck("legacy_order", legacy_order, ("legacy default stream", "stream", "gate")),
    Stuck("second_host_thread", second_host_thread, ("waits for stream", "gate", "closed")),
    *functions.STUCK,
    *ascend.STUCK,
    *mixed.STUCK,
)

#: Programs that do not wait in the runtime, or whose function never comes back: another thread looks at them.
WATCHED: tuple[Stuck, ...] = (*host.WATCHED, *mixed.WATCHED)
