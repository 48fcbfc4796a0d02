"""One pool of events for all devices.

Seen: rare wrong query results with several GPUs: an event of the pool was made
on one device and recorded on another's stream. That fails, the error was
dropped, and the buffer went back as if nobody used it (NVIDIA/cuCascade #189;
events per thread: rapidsai/rmm #1306).
Missing: the device in the key of the pool.
Passes by luck: the host waits for other work before it writes the buffer
again, and the copy was ready first.
"""

from __future__ import annotations

import contextlib

import halstream as hs
from halstream.cupy import cuda
from halstream.cupy.cuda.runtime import CUDARuntimeError

from ._host import LIMIT, Host, N, pinned_numbers, rest


def _pool() -> dict[int, cuda.Event]:
    """Return an event of each device."""
    events = {}
    for number in range(2):
        with cuda.Device(number):
            events[number] = cuda.Event(disable_timing=True)
    return events


def _run(ordered: bool) -> None:
    host = Host()
    events, first = _pool(), cuda.Stream(non_blocking=True)
    with cuda.Device(1):
        second = cuda.Stream(non_blocking=True)
    slab = pinned_numbers(1)
    near, far = host.numbers(0), host.numbers(0, device=1)
    try:
        host.parse()
        far.copy_from(slab, second)
        guard = events[1] if ordered else events[0]
        with contextlib.suppress(CUDARuntimeError):  # as a build without assertions does
            guard.record(second)
        near.fill(8, first)
        first.synchronize(timeout=LIMIT)
        host.step()
        guard.synchronize(timeout=LIMIT)  # the slab is free for the next one
        hs.host_access(slab, "w")
        slab[:] = 2
        assert far.numpy(second).tolist() == [1] * N
    finally:
        rest(first, second)


def broken() -> None:
    """Run with an event of any device."""
    _run(ordered=False)


def fixed() -> None:
    """Run with an event of the stream's device."""
    _run(ordered=True)
