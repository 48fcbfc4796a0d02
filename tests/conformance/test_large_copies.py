"""Large copies, which a worker of the device makes while other threads wait."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import halstream as hs
import numpy as np
import pytest

LIMIT = 10.0

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize("size", [2**20 - 1, 2**20, 4_000_003, 20_000_001])
def test_M3_a_large_copy_is_whole_when_any_of_many_waiting_threads_returns(size: int) -> None:
    s, source, target = hs.Stream(), hs.pinned_empty(size, np.uint8), hs.empty(size, np.uint8)
    back, rng = hs.pinned_empty(size, np.uint8), np.random.default_rng(size)
    for _ in range(5):
        source[:] = rng.integers(0, 256, size, np.uint8)
        back[:] = 0
        target.copy_from(source, s)
        target.copy_to(back, s)
        event, wrong = s.record(), []

        def wait(event: Any = event, wrong: list[str] = wrong) -> None:
            event.synchronize(timeout=LIMIT)
            if not np.array_equal(source, back):
                wrong.append("the copy was not whole")

        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait()
        for thread in threads:
            thread.join(LIMIT)
        assert wrong == []
        s.synchronize(timeout=LIMIT)
        assert s.query()


def test_S1_large_copies_behind_each_other_stay_in_order() -> None:
    size = 4 << 20
    s, blocks = hs.Stream(), [hs.empty(size, np.uint8) for _ in range(4)]
    for block in blocks:
        block.fill(0, s)
    first = hs.pinned_empty(size, np.uint8)
    for value in range(1, 20):
        s.synchronize(timeout=LIMIT)
        first[:] = value
        blocks[0].copy_from(first, s)
        for source, target in itertools.pairwise(blocks):
            target.copy_from(source, s)
        np.testing.assert_array_equal(blocks[-1].numpy(s), value)


def test_S8_a_limit_ends_a_wait_for_large_copies_and_they_go_on() -> None:
    size = 64 << 20
    s, source, target = hs.Stream(), hs.pinned_empty(size, np.uint8), hs.empty(size, np.uint8)
    source[:] = 7
    for _ in range(40):
        target.copy_from(source, s)
    with pytest.raises(hs.WaitTimeoutError):
        s.synchronize(timeout=0.01)
    s.synchronize(timeout=60)
    np.testing.assert_array_equal(target.numpy(s)[:: size // 64], 7)
