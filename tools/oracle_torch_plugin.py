"""A pytest plugin for torch's tests of an older version: names that torch.testing has lost since."""

from __future__ import annotations

from collections.abc import Callable


def same(test: Callable[..., None]) -> Callable[..., None]:
    """Return a test as it is: what is left out on Apple's devices runs on CUDA's."""
    return test


def pytest_configure() -> None:
    from torch.testing._internal import common_utils

    for name in ("skipIfMps",):
        if not hasattr(common_utils, name):
            setattr(common_utils, name, same)
