"""What the tests of the mindspore dialect share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import halstream as hs
import numpy as np
import pytest
from halstream._core import _current
from halstream.mindspore import Tensor, hal

OnTarget = Callable[[str], None]


@pytest.fixture
def on_target(backend: str) -> Iterator[OnTarget]:
    """Return a function that lets the devices go by a target's name until the test ends."""
    before = _current.process_device()

    def choose(name: str) -> None:
        _current.set_process_device(0, name)

    yield choose
    _current.set_process_device(*before)


@pytest.fixture
def ascend(on_target: OnTarget) -> None:
    """Let the devices go by 'Ascend' until the test ends."""
    on_target("Ascend")


def reserve_pinned_memory(t: Tensor, copies: int) -> None:
    """Make room for copies of a tensor in pinned memory, through which operators work on devices of vendors.

    A driver may wait for the device when it allocates some, also for a stream that a test holds.
    """
    some = [hs.pinned_empty(t.nbytes, np.uint8) for _ in range(copies)]
    del some
    hal.synchronize()
