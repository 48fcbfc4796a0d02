"""Suggested lines tried: the tests run again with them, on copies of the source that only exist in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .._checks.applying import NOT_PROVEN, Verdict, files_of, sources_of, unordered, verdict
from .._checks.results import Result
from .plan import PLAN

__all__ = ["tried"]

# Seconds for a process, and more of them for each of its tests.
_PROCESS, _TEST = 60.0, 60.0


class _Failed(Exception):
    """A process gave no answer."""


def tried(config: pytest.Config, results: Sequence[Result], schedules: int) -> Iterator[tuple[str, Verdict]]:
    """Yield each test in which something unordered was found, and what becomes of it with all suggested lines.

    Parameters
    ----------
    config : Config
    results : sequence of Result
        Of the session.
    schedules : int
        Under how many each test is run.
    """
    wrong = [one for one in unordered(results) if one["test"]]
    tests = list(dict.fromkeys(one["test"] for one in wrong))
    unproven = {one["test"] for one in wrong if not one["changes"]}
    patchable = [test for test in tests if test not in unproven]
    yield from ((test, NOT_PROVEN) for test in tests if test in unproven)
    if not patchable:
        return
    sources = sources_of(wrong)
    needed = {test: files_of(one for one in wrong if one["test"] == test) for test in patchable}
    try:
        plain = _run(config, patchable, {}, 1)
        fixed = _run(config, patchable, sources, schedules)
    except _Failed as exc:
        yield from ((test, Verdict(f"not tried: {exc}")) for test in patchable)
        return
    for test in patchable:
        yield test, _verdict(test, plain, fixed, needed[test], schedules)


def _verdict(test: str, plain: Any, fixed: Any, files: set[str], schedules: int) -> Verdict:
    if test not in plain["found"]:
        reason = plain["ended"].get(test, "it is not collected")
        more = f" ({reason.strip().splitlines()[-1]})" if reason else ""
        return Verdict(
            "not tried: in a process of its own, with the ini file but no other options of this session, nothing is "
            f"found in it without the lines{more}; it needs state of other tests, or these options"
        )
    return verdict(files, fixed["loaded"], fixed["ended"].get(test, "it was not run"), schedules)


def _run(config: pytest.Config, tests: Sequence[str], sources: dict[str, str], schedules: int) -> Any:
    """Run tests in a process of their own and return the answer."""
    with tempfile.TemporaryDirectory(prefix="halstream-") as folder:
        request, answer, output = (Path(folder, name) for name in ("request", "answer", "output"))
        content = {"sources": sources, "answer": str(answer), "path": [str(path) for path in sys.path]}
        request.write_text(json.dumps(content), encoding="utf-8")
        words = [sys.executable, "-m", "halstream", "_trial", str(request), *_options(config, folder, schedules)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        where = (f"{config.rootpath}{os.sep}{test}" for test in tests)
        with output.open("wb") as sink:
            try:
                subprocess.run(
                    [*words, *where],
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    cwd=config.invocation_params.dir,
                    env=environment,
                    timeout=_PROCESS + _TEST * len(tests),
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise _Failed("their process did not end") from None
        try:
            return json.loads(answer.read_text(encoding="utf-8"))
        except FileNotFoundError:
            last = output.read_text(errors="replace").strip().splitlines()[-1:]
            raise _Failed(f"their process ended early: {''.join(last)}") from None


def _options(config: pytest.Config, folder: str, schedules: int) -> list[str]:
    """Return the options of a process: what finds the tests as this session does, but nothing that writes files."""
    words = ["-q", "--assert=plain", f"--rootdir={config.rootpath}", f"--basetemp={folder}/tmp", "-o", "addopts="]
    if config.inipath is not None:
        words += ["-c", str(config.inipath)]
    for plugin in config.getoption("plugins", None) or ():
        words += ["-p", plugin]
    for override in config.getoption("override_ini", None) or ():
        words += ["-o", override]
    if config.pluginmanager.has_plugin("cacheprovider"):
        words += ["-o", f"cache_dir={folder}/cache"]
    if config.pluginmanager.has_plugin("xdist"):
        words += ["-p", "no:xdist"]
    words += ["-o", "stream_report=", f"--import-mode={config.getoption('importmode', 'prepend')}"]
    if config.getoption("stream_torch", None):
        words.append("--stream-torch")
    if config.getoption("stream_cuda", None):
        words.append("--stream-cuda")
    plan = config.stash[PLAN]
    words += [f"--stream-{flag}" for flag in ("strict", "pages") if getattr(plan, flag)]
    return [*words, "--stream-sanitize", "--stream-report=json:" + f"{folder}/found", f"--stream-schedules={schedules}"]
