"""Files with the results of a session, from the reports of its tests: those of xdist's workers come with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from .._checks.formats import Target, write
from .._checks.results import Result

__all__ = ["Files"]


class Files:
    """A plugin that writes results at the end of the session."""

    def __init__(self, targets: Sequence[Target], apply: int, *, sanitized: bool) -> None:
        self._targets = targets
        self._sanitized = sanitized  # every test, whatever its markers say
        self._apply = apply  # under how many schedules the suggested lines are tried; 0: they are not
        self._results: list[Result] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._results += getattr(report, "stream_results", ())

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        for target in self._targets:
            try:
                write([target], self._results, config.rootpath, terminalreporter.write)
            except OSError as exc:
                terminalreporter.write_line(f"ERROR: {target} cannot be written: {exc.strerror}", red=True)
                terminalreporter._session.exitstatus = pytest.ExitCode.USAGE_ERROR
            else:
                if target.path:
                    terminalreporter.write_line(f"{len(self._results)} result(s) of streams in {target.path}")
        if not self._sanitized:
            terminalreporter.write_line(
                "unordered accesses were looked for only in tests whose markers ask for that; "
                "--stream-sanitize looks for them in all tests"
            )
        if self._apply:
            self._try(terminalreporter, config)

    def _try(self, terminalreporter: Any, config: pytest.Config) -> None:
        from .applied import tried

        terminalreporter.section("suggested lines, applied to copies")
        count = 0
        for test, verdict in tried(config, self._results, self._apply):
            count += 1
            terminalreporter.write_line(f"{test}: {verdict}")
        if not count:
            terminalreporter.write_line("there are none: nothing unordered was found in a test")
