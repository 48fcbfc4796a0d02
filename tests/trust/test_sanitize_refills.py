"""Pinned memory that the host changes too early after a copy has read it."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import testing
from halstream.cupy import cuda

LIMIT = 10.0


@pytest.mark.parametrize("source", ["pinned", "registered"])
@pytest.mark.parametrize("schedule", ["fifo", "threads"])
@pytest.mark.parametrize("end", ["stream", "event", "query", "device", "copy", "block"])
def test_V42_a_refill_after_the_copy_ran_is_found(backend: str, end: str, schedule: str, source: str) -> None:
    if schedule == "fifo" and backend != "host":
        pytest.skip("only the host device has schedules")
    s, done = hs.Stream(non_blocking=True), hs.Event()
    x = hs.empty(16, np.uint8)
    view = np.ones(16, np.uint8)
    staging: Any = view
    if source == "registered":
        cuda.runtime.hostRegister(view.ctypes.data, 16, 0)
    else:
        staging = hs.pinned_empty(16, np.uint8)
        view = np.asarray(staging)
        view[:] = 1
    with testing.schedule("fifo") if schedule == "fifo" else nullcontext(), hs.sanitize(on="collect") as report:
        x.copy_from(staging, s)
        done.record(s)
        if schedule == "threads":  # the copy has run when the memory changes; a description orders nothing
            end_of_wait = time.monotonic() + LIMIT
            while "is idle" not in s.describe() and time.monotonic() < end_of_wait:
                pass
        view[5] = 2
        if end == "stream":
            s.synchronize(timeout=LIMIT)
        elif end == "event":
            done.synchronize(timeout=LIMIT)
        elif end == "query":
            while not done.query():
                pass
        elif end == "device":
            hs.synchronize(timeout=LIMIT)
        elif end == "copy":
            x.numpy(s)
    s.synchronize(timeout=LIMIT)
    if source == "registered":
        cuda.runtime.hostUnregister(view.ctypes.data)
    (found,) = report
    assert found.category == "refill" and found.first.kind == "copy" and found.nbytes == 16


@pytest.mark.parametrize("how", ["stream", "event", "query", "device", "copy", "thread"])
def test_V42_memory_is_the_hosts_again_once_it_waited(backend: str, how: str) -> None:
    s, done = hs.Stream(non_blocking=True), hs.Event()
    x, staging = hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    view = np.asarray(staging)
    view[:] = 1

    def refill() -> None:
        if how == "device":
            hs.synchronize(timeout=LIMIT)
        elif how == "copy":
            x.numpy(s)
        elif how == "query":
            while not done.query():
                pass
        elif how == "event":
            done.synchronize(timeout=LIMIT)
        else:
            s.synchronize(timeout=LIMIT)
        view[5] = 2

    with hs.sanitize(on="collect") as report:
        x.copy_from(staging, s)
        done.record(s)
        if how == "thread":
            other = threading.Thread(target=refill)
            other.start()
            other.join(LIMIT)
        else:
            refill()
        s.synchronize(timeout=LIMIT)
    assert not report.races and not report.refills


@pytest.mark.parametrize("how", ["copy", "function", "host", "free"])
def test_V42_other_accesses_that_may_have_changed_the_memory_are_judged_by_themselves(backend: str, how: str) -> None:
    s = hs.Stream(non_blocking=True)
    x, staging = hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    staging[:] = 1
    with hs.sanitize(on="collect") as report:
        x.copy_from(staging, s)
        if how == "copy":
            y = hs.zeros(16, np.uint8, stream=s)
            y.copy_to(staging, s)
        elif how == "function":
            s.call(lambda: staging.fill(7))
        elif how == "host":
            hs.host_access(staging, "w")
            staging[:] = 7
        else:
            del staging
            hs.pinned_empty(16, np.uint8)[:] = 7
        s.synchronize(timeout=LIMIT)
    assert not report.refills
    assert len(report.races) == (how == "host")
