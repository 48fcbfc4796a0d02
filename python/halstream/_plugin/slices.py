"""The plugin of a campaign's sessions: tests are run under parts of their schedules, and each part is answered.

``pytest -p halstream._plugin.slices --stream-slices=FILE`` reads what to run from a file and writes what came of it
as lines of JSON to a pipe, in the process that shows reports: the only one, or the controller of pytest-xdist.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import pytest

from .plan import SLICES
from .state import forget_instance

__all__: list[str] = []

#: Before the number of the first schedule of a part, in the id of its item.
_MARK = "@schedule-"
_MARKED = re.compile(rf"{_MARK}(\d+)")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stream-slices", metavar="FILE", default=None, help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    request = json.loads(Path(config.getoption("stream_slices")).read_text(encoding="utf-8"))
    config.stash[SLICES] = {}
    if not hasattr(config, "workerinput"):  # of xdist, whose workers end with their controller
        threading.Thread(target=_end_with, args=(request["alive"],), daemon=True).start()
        config.pluginmanager.register(_Answers(os.fdopen(request["answers"], "w", encoding="utf-8")))
    config.pluginmanager.register(_Slices(config, request["slices"]))


def _end_with(pipe: int) -> None:
    """End this process when the one that holds the other end of a pipe has ended, in whatever way."""
    os.read(pipe, 1)
    os._exit(1)


class _Slices:
    """Puts an item for each part in the place of the tests."""

    def __init__(self, config: pytest.Config, slices: list[dict[str, Any]] | None) -> None:
        self._config = config
        self._slices = slices  # None: the tests are only collected
        self._failed: set[str] = set()  # tests, in this process

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._slices is None:
            return
        found = {item.nodeid: item for item in items if isinstance(item, pytest.Function)}
        made: list[pytest.Item] = []
        for one in self._slices:
            if one["test"] in found:
                made.append(self._part(found[one["test"]], one))
        items[:] = made

    def _part(self, item: pytest.Function, one: Mapping[str, Any]) -> pytest.Item:
        # With its own name the token is remembered.
        part = item if one["shrink"] else _copy(item, f"{_MARK}{one['first']}")
        settings = {name: one[name] for name in ("schedules", "depth", "seed", "first", "shrink")}
        self._config.stash[SLICES][part.nodeid] = settings
        return part

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        # One failure of a test is enough; its other parts stay unanswered.
        return True if _test_of(item.nodeid)[0] in self._failed else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(_test_of(report.nodeid)[0])


class _Answers:
    """Writes what is collected, begun, done and lost."""

    def __init__(self, pipe: TextIO) -> None:
        self._pipe = pipe
        self._reports: dict[str, list[pytest.TestReport]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.config.option.collectonly:
            tests = [item.nodeid for item in session.items if isinstance(item, pytest.Function)]
            self._write("collected", tests=tests, others=len(session.items) - len(tests))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        test, first = _test_of(nodeid)
        self._write("begun", test=test, first=first)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.when) == "???":  # of xdist: its worker has ended
            test, first = _test_of(report.nodeid)
            self._reports.pop(report.nodeid, None)
            self._write("lost", test=test, first=first)
        else:
            self._reports.setdefault(report.nodeid, []).append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        reports = self._reports.pop(nodeid, [])
        if not reports:
            return
        test, first = _test_of(nodeid)
        answer: dict[str, Any] = {"schedules": 1, "used": False, "skipped": any(one.skipped for one in reports)}
        failed = next((one for one in reports if one.failed), None)
        if failed is not None:
            crash = getattr(failed.longrepr, "reprcrash", None)
            title = crash.message if crash is not None else failed.longreprtext
            answer |= {"title": title.splitlines()[0] if title else "failed", "number": 0, "token": ""}
            if first < 0:  # of a failure that was made small
                answer["text"] = "\n\n".join(text for name, text in failed.sections if name == "stream schedule")
        for one in reports:
            answer |= getattr(one, "stream_searched", {})
        self._write("done", test=test, first=first, **answer)

    def _write(self, kind: str, **values: Any) -> None:
        self._pipe.write(json.dumps({"kind": kind, **values}) + "\n")
        self._pipe.flush()


def _copy(item: pytest.Function, mark: str) -> pytest.Function:
    """Return an item of the same function whose id has a mark behind the function's name."""
    function = item.originalname
    part: pytest.Function = type(item).from_parent(
        item.parent,
        name=f"{function}{mark}{item.name.removeprefix(function)}",
        callspec=getattr(item, "callspec", None),
        callobj=item.obj,
        fixtureinfo=item._fixtureinfo,
        originalname=f"{function}{mark}",  # which newer versions of pytest make the id from
    )
    part.originalname = function
    forget_instance(part)  # each has one of its own
    part.own_markers = list(item.own_markers)
    part.keywords = item.keywords
    return part


def _test_of(nodeid: str) -> tuple[str, int]:
    """Return the test of an item's id, and the number of its first schedule; -1 for a test with its own name."""
    found = _MARKED.search(nodeid)
    if found is None:
        return nodeid, -1
    return nodeid[: found.start()] + nodeid[found.end() :], int(found[1])
