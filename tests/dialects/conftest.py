"""For tests of dialects: figures of memory that other files' tests do not change."""

from __future__ import annotations

import gc
import time

import pytest

#: Seconds between two looks at the figures, and the most that they are looked at.
PAUSE, LIMIT = 0.03, 5.0


@pytest.fixture(scope="module", autouse=True)
def settled_memory(request: pytest.FixtureRequest) -> None:
    """Before files about memory: wait until nothing more is freed of what tests of other files have dropped.

    Collectors and workers free it some time later, and the figures count all of a device's memory.
    """
    if "memory" not in request.module.__name__:
        return
    request.getfixturevalue("backend")
    from halstream._memory import _figures

    before, end = -1, time.monotonic() + LIMIT
    while time.monotonic() < end:
        gc.collect()
        now = _figures.memory_stats(0)["allocated"]
        if now == before:
            return
        before = now
        time.sleep(PAUSE)
