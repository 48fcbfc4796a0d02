"""What the tests of the stall doctor share: schedules to run under, and how often it looked."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream import _native
from halstream._stalls import stall as _stall

#: Seconds until a test is taken to hang; nothing is ordered by it.
LIMIT = 30.0

SCHEDULES = ("parallel", "fifo", "latest", "random 1", "pct 1 2 50")


@contextlib.contextmanager
def scheduled(schedule: str) -> Iterator[None]:
    """Run the device under a schedule, and afterwards by itself again."""
    _native.schedule_set(schedule)
    try:
        yield
    finally:
        for device in hs.devices():
            with contextlib.suppress(hs.HalError):
                device.synchronize(timeout=LIMIT)
        _native.schedule_set("parallel")


class Looks:
    """Counts how often the doctor was asked about the wait of some thread."""

    def __init__(self) -> None:
        self.count = 0
        self.verdicts: list[str] = []

    def reach(self, count: int) -> None:
        """Let the doctor look so many times more; the caller stays one who could act."""
        goal, end = self.count + count, time.monotonic() + LIMIT
        while self.count < goal:
            assert time.monotonic() < end, "the doctor does not look"
            time.sleep(0.005)  # lets time pass, and orders nothing


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Count the looks of the test."""
    seen = Looks()
    judge = _stall._judge

    def counted(me: int) -> tuple[str, bool]:
        found = judge(me)
        seen.count += 1
        seen.verdicts.append(found[0])
        return found

    monkeypatch.setattr(_stall, "_judge", counted)
    return seen


@pytest.fixture(params=SCHEDULES)
def schedule(request: pytest.FixtureRequest, backend: str) -> Iterator[str]:
    """Run the test under each of some schedules."""
    with scheduled(request.param):
        yield request.param


def in_thread(function: Callable[..., Any], *args: Any) -> threading.Thread:
    """Start a thread that is no daemon."""
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


def chain(exc: pytest.ExceptionInfo[hs.StallError], *words: str) -> str:
    """Check that words come in this order in the text of an error; return the text."""
    text = str(exc.value)
    at = 0
    for word in words:
        found = text.find(word, at)
        assert found >= 0, f"{word!r} is not behind the words before it in:\n{text}"
        at = found + len(word)
    return text


def place(file: str, word: str) -> str:
    """Return file and line of the (only) line of a file that ends with a comment."""
    with open(file) as lines:
        found = [number for number, line in enumerate(lines, 1) if line.rstrip().endswith("# " + word)]
    assert len(found) == 1, word
    return f"{file}:{found[0]}"
