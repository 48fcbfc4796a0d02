"""What tests of the contract share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

LIMIT = 10.0


@pytest.fixture
def under(backend: str) -> Iterator[Callable[[str], None]]:
    """Return a function that sets a schedule; the one of real threads comes back after the test."""
    import halstream as hs
    from halstream import _native

    def under(schedule: str) -> None:
        for device in hs.devices():
            device.synchronize(timeout=LIMIT)
        _native.schedule_set(schedule)

    yield under
    for device in hs.devices():
        device.synchronize(timeout=LIMIT)
    _native.schedule_set("parallel")
