"""Which driver the tests ask, and the mark of those that only the look-alike can pass."""

from __future__ import annotations

import os

import pytest

#: A driver to ask instead of the look-alike; each test then needs a process of its own.
REAL = os.environ.get("FAKECUDA_REAL_DRIVER", "")


def fake_only(reason: str) -> pytest.MarkDecorator:
    """Mark a test that only the look-alike can pass."""
    return pytest.mark.skipif(bool(REAL), reason=f"of the look-alike only: {reason}")
