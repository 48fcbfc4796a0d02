"""Another library beside the runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from other_library import Library


@pytest.fixture
def library(backend: str) -> Iterator[Callable[..., Library]]:
    """Return a function that makes another library's view of a device: ``library(0)``."""
    made: list[Library] = []

    def make(ordinal: int = 0) -> Library:
        made.append(Library(ordinal))
        return made[-1]

    yield make
    for one in made:
        one.close()
