"""One session of pytest for ``halstream verify``: which tests it runs, what they show, and which fixes are proven.

The command starts it as ``python -m halstream _verify REQUEST ARGS`` and reads the answer from a file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .._checks.applying import unordered
from .._checks.patch import changed, unified
from .._checks.results import Result
from .applied import tried
from .chosen import affected, test_files
from .verification import Answer, Patch, Request

__all__ = ["main"]


class _Session:
    """A plugin that chooses the tests, and notes what becomes of them."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._total = 0
        self.answer: Answer = {
            "code": 0, "root": "", "files": None, "outcomes": {}, "failures": {}, "uncollected": [], "results": [],
            "patches": [], "unproven": {},
        }  # fmt: skip

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int | None:
        self.answer["root"] = str(config.rootpath)
        given = self._request["changed"]
        if given is None:
            return None
        files = [Path(name) for name in self._request["files"]]
        found = affected([Path(name) for name in given], files, Path(self._request["top"]))
        chosen = [str(file) for file in test_files(config, sorted(found.intersection(files)))]
        self.answer["files"] = chosen
        config.args[:] = chosen
        if hasattr(config.option, "numprocesses"):
            # The workers of xdist would take the arguments that pytest was started with.
            config.option.numprocesses, config.option.dist = 0, "no"
        return None if chosen else 0

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.answer["uncollected"].append(report.nodeid)
            self.answer["failures"][report.nodeid] = report.longreprtext

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._total = len(session.items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        of = f" of {self._total}" if self._total else ""  # the workers of xdist collect the tests
        self._progress(f"test {len(self.answer['outcomes']) + 1}{of}: {nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        answer = self.answer
        self.answer["results"] += getattr(report, "stream_results", ())
        if report.failed:
            answer["outcomes"][report.nodeid] = "failed"
            answer["failures"].setdefault(report.nodeid, report.longreprtext)
        elif report.when == "call" or report.skipped:
            answer["outcomes"].setdefault(report.nodeid, "skipped" if report.skipped else "passed")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return  # of xdist, whose other end has the reports
        results = [one for one in unordered(self.answer["results"]) if one["test"]]
        while results:
            tests = {one["test"] for one in results}
            self._progress(f"trying the suggested lines with {len(tests)} test(s)")
            verdicts = dict(tried(session.config, results, self._request["schedules"]))
            self.answer["unproven"] |= {test: str(one) for test, one in verdicts.items() if not one.proven}
            proven = [one for one in results if verdicts[one["test"]].proven]
            if len(proven) == len(results):
                self.answer["patches"].append(_patch(proven, self.answer["root"]))
                return
            results = proven  # once more, without the lines of the other tests

    def _progress(self, text: str) -> None:
        Path(self._request["progress"]).write_text(text, encoding="utf-8")


def _patch(results: Sequence[Result], root: str) -> Patch:
    return {
        "diff": unified(results, root),
        "files": [os.path.relpath(file, root) for file in changed(results)],
        "tests": sorted({one["test"] for one in results}),
    }


def main(argv: Sequence[str]) -> int:
    """Run the session of a request; the other arguments are for pytest."""
    request: Request = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    session = _Session(request)
    plugins: list[Any] = [session]
    code = int(pytest.main(list(argv[1:]), plugins=plugins))
    session.answer["code"] = code
    Path(request["answer"]).write_text(json.dumps(session.answer), encoding="utf-8")
    sys.stdout.flush()
    return code
