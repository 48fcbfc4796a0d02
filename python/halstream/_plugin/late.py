"""What is found out about a test when its function has returned, and becomes part of its one outcome."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from .._checks.results import Result, of_exception
from .._schedules.execution import Failure
from .._schedules.explore import failure_of
from .plan import RESULTS

__all__ = ["Late"]

_TITLE = "streams"


class Late:
    """Faults of one run of a test: unordered accesses, work and objects that it leaves, failed assertions.

    Attributes
    ----------
    assertions : list of AssertionError
        Of functions on streams that ran after the test's own function.
    results : list of Result
        The first of them as a result, if reports were asked for.
    final : bool
        Whether the test failed for something that does not depend on the schedule.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self.results: list[Result] = []
        self._texts: list[str] = []
        self.assertions: list[AssertionError] = []
        self.final = False

    def add(self, text: str) -> None:
        """Add a fault, '' for none."""
        if text:
            self._texts.append(text)

    def conclude(self, reports: Sequence[pytest.TestReport]) -> Failure | None:
        """Make the faults part of the report that failed first, or fail the test's call; return that failure."""
        parts: list[object] = [_repr(self._item, exc) for exc in self.assertions[:1]]
        parts += self._texts
        if not parts:
            return None
        failed = next((report for report in reports if report.failed or hasattr(report, "wasxfail")), None)
        # Without a call that passed it was skipped.
        call = next((report for report in reports if report.when == "call" and report.passed), reports[-1])
        self.final = bool(self._texts)
        if self.assertions and failed is None and RESULTS in self._item.config.stash:
            self.results = [found for found in [of_exception(self.assertions[0], self._item.nodeid)] if found]
        if failed is not None:
            failed.sections.append((_TITLE, "\n\n".join(map(str, parts))))
            return None
        call.outcome = "failed"
        call.longrepr = parts[0]  # type: ignore[assignment]
        if len(parts) > 1:
            call.sections.append((_TITLE, "\n\n".join(map(str, parts[1:]))))
        if self.assertions:
            return failure_of(self.assertions[0], search=not self._texts)
        return Failure("Failed", text=self._texts[0], search=False)


def _repr(item: pytest.Item, exc: AssertionError) -> object:
    """Return what pytest shows of an exception that a test raises."""
    return item.repr_failure(pytest.ExceptionInfo.from_exception(exc))
