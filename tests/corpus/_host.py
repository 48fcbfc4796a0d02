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


def parse() -> int:
    """Do what a host does between two launches: read a request, about 0.1 ms of Python."""
    return sum(entry["size"] for entry in json.loads(_REQUEST).values())


def device_numbers(value: int, device: int = 0) -> hs.Array:
    """Return numbers in device memory, all of one value; they are there on return."""
    array = hs.empty(N, np.int32, device=device)
    loader = hs.Stream(device, non_blocking=True)
    array.fill(value, loader)
    loader.synchronize(timeout=LIMIT)
    return array


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
