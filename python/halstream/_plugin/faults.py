"""Waits without an end, and assertions of functions on streams, as results of the tests that fail with them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from .._checks.results import Result, of_exception

__all__ = ["Faults", "take"]


class Faults:
    """A plugin that gives the report of a phase the result that its exception stands for."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        if call.excinfo is None or not report.failed:
            return
        found = of_exception(call.excinfo.value, item.nodeid)
        if found is not None:
            report.stream_results = [found]


def take(report: pytest.TestReport) -> list[Result]:
    """Return the results of a report, and take them away from it."""
    found: list[Result] = vars(report).pop("stream_results", [])
    return found
