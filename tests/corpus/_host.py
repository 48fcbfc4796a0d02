"""What the programs share: a host that has work of its own, and an end that leaves nothing pending."""

from __future__ import annotations

import json

import halstream as hs
import numpy as np

#: Elements of every buffer: so few that the device needs no engine for them.
N = 64

#: Seconds after which a wait counts as never ending.
LIMIT = 10.0

_REQUEST = json.dumps({f"sample {i}": {"size": i, "name": f"part-{i}"} for i in range(480)})


class Host:
    """What a host does besides: work of its own, and a kernel that it has to wait for."""

    def __init__(self) -> None:
        self._streams: dict[int, hs.Stream] = {}
        self.stream = self._stream(0)

    def _stream(self, device: int) -> hs.Stream:
        if device not in self._streams:
            self._streams[device] = hs.Stream(device, non_blocking=True)
        return self._streams[device]

    def numbers(self, value: int, device: int = 0) -> hs.Array:
        """Return numbers in device memory, all of one value; they are there on return."""
        array = hs.empty(N, np.int32, device=device)
        stream = self._stream(device)
        array.fill(value, stream)
        stream.synchronize(timeout=LIMIT)
        return array

    def parse(self) -> int:
        """Read a request, 0.2 ms of Python, in which nothing is asked of the device."""
        return sum(entry["size"] for entry in json.loads(_REQUEST).values())

    def step(self) -> None:
        """Wait for a kernel of 0.3 ms on a stream that nothing else uses.

        It is no order for any other stream, and it is what makes the broken
        programs pass on real threads: what was enqueued before can run at once,
        often on this very thread while it waits.
        """
        self.stream.delay(0.0003)
        self.stream.synchronize(timeout=LIMIT)


def pinned_numbers(value: int) -> np.ndarray:
    """Return numbers in pinned memory, all of one value."""
    buffer = hs.pinned_empty(N, np.int32)
    hs.host_access(buffer, "w")
    buffer[:] = value
    return buffer


def read(buffer: np.ndarray) -> list[int]:
    """Return the numbers that a buffer of the host holds now."""
    hs.host_access(buffer, "r")
    return buffer.tolist()


def rest(*streams: hs.Stream) -> None:
    """Wait until streams of any dialect have nothing left to do."""
    for stream in streams:
        hs.Stream.synchronize(stream, timeout=LIMIT)
