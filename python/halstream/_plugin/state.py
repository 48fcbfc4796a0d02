"""What pytest keeps of a test from one run to the next, and of its reports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unittest import SkipTest

__all__ = ["HeldBack", "forget_instance", "forget_subtests", "is_skip"]


class HeldBack:
    """Hooks of pytest, but for reports, which are kept."""

    def __init__(self, relay: Any, kept: list[Any]) -> None:
        self._relay = relay
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._relay, name)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._kept.append(report)


def is_skip(exc: BaseException) -> bool:
    """Whether an exception skips a test."""
    unittest = sys.modules.get("unittest")
    skip: type[SkipTest] | None = getattr(unittest, "SkipTest", None)
    return isinstance(exc, pytest.skip.Exception) or (skip is not None and isinstance(exc, skip))


def forget_subtests(item: pytest.Item) -> None:
    """Clear pytest's count of subtests that failed in earlier runs (pytest 9)."""
    module = sys.modules.get("_pytest.subtests")
    key = getattr(module, "failed_subtests_key", None)
    counts = item.config.stash.get(key, None) if key is not None else None
    if counts is not None:
        for name in (getattr(item, "id", None), item.nodeid):
            counts.pop(name, None)


def forget_instance(item: pytest.Function) -> None:
    # Of the type: as a property of an item it would make an instance.
    if item.cls is not None and not hasattr(type(item), "_testcase"):
        item.__dict__.pop("_instance", None)
        item.__dict__.pop("_obj", None)
