"""V5: a wait for a value orders, as far as the writes that can have ended it do."""

from __future__ import annotations

import halstream as hs
import numpy as np
import pytest
from halstream._memory._stream_values import wait_value, write_value
from halstream._native._constants import CONDITION_AT_LEAST, CONDITION_EQUAL

LIMIT = 10.0

pytestmark = pytest.mark.usefixtures("backend")


def _zero() -> hs.Array:
    """Return a value that is 0 already: the fill is not ordered with non-blocking streams."""
    flag = hs.zeros(1, np.uint64)
    hs.current_stream().synchronize(timeout=LIMIT)
    return flag


def test_V5_what_is_before_the_write_is_ordered_and_what_is_behind_it_is_not() -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, y, flag = hs.empty(4, np.uint8), hs.empty(4, np.uint8), _zero()
    with hs.sanitize(on="collect") as report:
        x.fill(1, a)
        write_value(a, flag.ptr, 1)
        y.fill(1, a)
        wait_value(b, flag.ptr, 1, CONDITION_AT_LEAST)
        x.fill(2, b)
        y.fill(2, b)
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)
    assert len(report.races) == 1, str(report)
    assert f"{y.ptr:#x}" in str(report) or "y" in str(report)


def test_V5_a_wait_enqueued_before_the_write() -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, flag = hs.empty(4, np.uint8), _zero()
    with hs.sanitize():
        wait_value(b, flag.ptr, 1, CONDITION_EQUAL)
        x.fill(2, b)
        x.fill(1, a)
        write_value(a, flag.ptr, 1)
        b.synchronize(timeout=LIMIT)
        a.synchronize(timeout=LIMIT)
