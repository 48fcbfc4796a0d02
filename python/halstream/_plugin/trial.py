"""Some tests of a session in a process of its own, where files may be loaded with patched source.

The process that tries fixes starts it as ``python -m halstream _trial REQUEST ARGS`` and reads the answer
from a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from .._checks.patched import install

__all__ = ["main"]


class _Outcomes:
    """A plugin that notes how tests end, and which have findings."""

    def __init__(self) -> None:
        self.ended: dict[str, str] = {}  #: the first failure of each test, '' for one that passed
        self.found: list[str] = []  #: tests with findings

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self.ended.setdefault(report.nodeid, "it is skipped")
        elif report.failed:
            self.ended[report.nodeid] = self.ended.get(report.nodeid) or report.longreprtext or "it failed"
        elif report.when == "call":
            self.ended.setdefault(report.nodeid, "")
        if any(result["changes"] for result in getattr(report, "stream_results", ())):
            self.found.append(report.nodeid)


def main(argv: Sequence[str]) -> int:
    """Run tests as a request says.

    Parameters
    ----------
    argv : sequence of str
        The file of the request as JSON (``sources``: by file, ``answer``: the answer's file, ``path``: that of
        imports), and arguments for pytest.
    """
    request = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    sys.path[:] = request["path"]
    replaced = install(request["sources"])
    outcomes = _Outcomes()
    code = pytest.main(list(argv[1:]), plugins=[outcomes])
    answer = {"ended": outcomes.ended, "found": outcomes.found, "loaded": sorted(replaced.loaded)}
    Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")
    return int(code)
