"""The hardware queues of the look-alike driver, which streams of a priority may share."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import fake_driver

#: How many hardware queues a device of CUDA has, unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise.
QUEUES = 8
CONNECTIONS = os.environ.get("FAKECUDA_CONNECTIONS") or os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS") or str(QUEUES)
#: Whether streams share them; otherwise each has one of its own.
SHARED = os.environ.get("FAKECUDA_PROFILE") == "silicon" and CONNECTIONS != "0"


def too_few() -> set[str]:
    """Return the tests in which a stream goes on beside a held one, and which use more streams than there are queues.

    With `QUEUES` or more all are run: closed streams are used again, so that few are open at once. What holds
    streams by the dozen needs "held-streams". tools/hardware_queues.py writes the list.
    """
    if not SHARED or int(CONNECTIONS) >= QUEUES:
        return set()
    lines = (Path(__file__).parent / "hardware_queues.txt").read_text().splitlines()
    return {name for name, queues in map(str.split, lines) if int(queues) > int(CONNECTIONS)}


@contextlib.contextmanager
def in_any() -> Iterator[None]:
    """Have tools/hardware_queues.py not count the streams that are used meanwhile: one in a free queue suffices."""
    if "FAKECUDA_BESIDE" not in os.environ:
        yield
        return
    control = ctypes.CDLL(str(fake_driver.FAKE_CUDA)).fakecuda_control
    control(b"count off")
    try:
        yield
    finally:
        control(b"count on")
