"""A pytest plugin for numba-cuda's tests, which are in its wheel without their configuration."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request: pytest.FixtureRequest) -> None:
    """Set what an option of that configuration sets."""
    request.cls._dump_failed_filechecks = False
