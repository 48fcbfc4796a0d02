"""`halstream verify`: tests of a change in a process of their own, and what came of them as one document."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict

from .. import __version__
from .._checks.formats import fingerprint
from .._checks.results import Place, Result
from .._notes import explanation
from .._plugin.verification import Answer, Patch, Request
from .changes import Changes, NoChangesError, changes

__all__ = ["FORMAT", "Document", "Wanted", "verify"]

#: The number of the document's form; it grows when a reader of the last form would misread the next.
FORMAT = 1

#: Exit codes of pytest that say nothing is wrong with the session itself.
_RAN = (0, 1)
_NO_TESTS = 5
#: Seconds until progress is shown, between two looks, and that a process may take to end.
_QUIET, _LOOK, _END = 2.0, 0.1, 5.0


class Wanted(NamedTuple):
    """What is to be verified, and how."""

    paths: Sequence[str] = ()  #: tests; none: those that a change is about
    base: str = ""  #: the commit that the change began at
    schedules: int = 50
    torch: bool = False
    cuda: bool = False
    timeout: float = 600.0  #: seconds for all of it
    folder: str = "."


class Access(TypedDict):
    """An operation that takes part."""

    file: str
    line: int
    function: str
    stream: str | None  #: None for the host
    operation: str
    write: bool
    text: str


class Location(TypedDict):
    """A place in the source."""

    file: str
    line: int
    function: str


class Suggested(TypedDict):
    """The line that would order the accesses of one finding."""

    code: str
    where: str
    file: str
    line: int


class Finding(TypedDict):
    """One thing that is wrong, in one test or in several."""

    id: str
    code: str
    rule: str
    level: str
    title: str
    why: str
    text: str
    place: Location | None
    accesses: list[Access]
    fix: Suggested | None
    patch: int | None
    tests: list[str]
    count: int
    suppress: str
    token: str
    replay: str
    explain: str


class Failure(TypedDict):
    """A test that fails for another reason, or a file that cannot be collected."""

    test: str
    text: str


class Proven(TypedDict):
    """A patch that was tried."""

    diff: str
    files: list[str]
    tests: list[str]
    schedules: int


class Unproven(TypedDict):
    """A test with findings for which no patch is proven."""

    test: str
    why: str


class Tests(TypedDict):
    """Which tests ran."""

    files: list[str] | None
    passed: int
    failed: int
    skipped: int


class Document(TypedDict):
    """The answer: see verify.schema.json."""

    format: int
    halstream: str
    verdict: Literal["pass", "fail", "error", "nothing"]
    message: str
    root: str
    base: str | None
    schedules: int
    tests: Tests
    findings: list[Finding]
    failures: list[Failure]
    patches: list[Proven]
    unproven: list[Unproven]


class _CannotVerifyError(Exception):
    """The tests cannot be run; the text says why and what to do."""


def verify(wanted: Wanted, progress: Callable[[str], object]) -> Document:
    """Run tests under the sanitizer and under schedules, and try what is suggested.

    Parameters
    ----------
    wanted : Wanted
    progress : callable
        Called with a line about what is being done, at most every two seconds, from the third one on.
    """
    try:
        if importlib.util.find_spec("pytest") is None:
            raise _CannotVerifyError("pytest is not installed, which runs the tests; say pip install pytest")
        for path in wanted.paths:
            if not Path(wanted.folder, path.partition("::")[0]).exists():
                raise _CannotVerifyError(f"there is no file or folder {path.partition('::')[0]!r}")
        change = None if wanted.paths else changes(wanted.base, wanted.folder)
        return _document(wanted, change, _answer(wanted, change, progress))
    except (_CannotVerifyError, NoChangesError) as exc:
        return _without_tests(wanted, None, "error", str(exc))


def _without_tests(
    wanted: Wanted, base: str | None, verdict: Literal["error", "nothing"], message: str, root: str = ""
) -> Document:
    return {
        "format": FORMAT, "halstream": __version__, "verdict": verdict, "message": message,
        "root": root or os.path.abspath(wanted.folder), "base": base, "schedules": wanted.schedules,
        "tests": {"files": [], "passed": 0, "failed": 0, "skipped": 0},
        "findings": [], "failures": [], "patches": [], "unproven": [],
    }  # fmt: skip


# -- the session --------------------------------------------------------------


def _answer(wanted: Wanted, change: Changes | None, progress: Callable[[str], object]) -> Answer:
    """Run the session in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="halstream-") as folder:
        request, answer, told, output = (Path(folder, name) for name in ("request", "answer", "told", "output"))
        content: Request = {
            "changed": None if change is None else [str(file) for file in change.changed],
            "files": [] if change is None else [str(file) for file in change.files],
            "top": "" if change is None else str(change.top),
            "schedules": wanted.schedules,
            "answer": str(answer),
            "progress": str(told),
        }
        request.write_text(json.dumps(content), encoding="utf-8")
        words = [sys.executable, "-m", "halstream", "_verify", str(request), "-q", "--stream-sanitize"]
        words += [f"--stream-schedules={wanted.schedules}", f"--stream-report=json:{folder}/found"]
        words += ["--stream-torch"] * wanted.torch + ["--stream-cuda"] * wanted.cuda
        with output.open("wb") as sink:
            process = subprocess.Popen(
                [*words, *wanted.paths],
                cwd=wanted.folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # ended with all that it started
            )
            try:
                _wait(process, wanted, told, progress)
            finally:
                _end(process)
        try:
            found: Answer = json.loads(answer.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise _CannotVerifyError(
                f"the process of the tests ended with {_ended(process.returncode)} before they did; it printed last: "
                f"{_last(output)}"
            ) from None
        if found["code"] not in (*_RAN, _NO_TESTS) and not found["failures"]:
            raise _CannotVerifyError(f"pytest could not run the tests: {_last(output)}")
        return found


def _wait(process: subprocess.Popen[bytes], wanted: Wanted, told: Path, progress: Callable[[str], object]) -> None:
    begun = time.monotonic()
    shown, at = "", begun
    while process.poll() is None:
        now = time.monotonic()
        if now - begun > wanted.timeout:
            doing = f" ({told.read_text(errors='replace')})" if told.exists() else ""
            raise _CannotVerifyError(
                f"the tests did not end within {wanted.timeout:g} s{doing}; name fewer tests, or give --timeout more"
            )
        if now - at >= _QUIET:
            text = told.read_text(errors="replace") if told.exists() else "starting pytest"
            if text and text != shown:
                progress(f"{text} ({now - begun:.0f} s)")
                shown, at = text, now
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(_END)


def _ended(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _last(output: Path) -> str:
    """Return the last lines that a process printed, without those of pytest's summary."""
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "E  "))]
    return " / ".join((errors or lines)[-3:]) or "nothing"


# -- the document -------------------------------------------------------------


def _document(wanted: Wanted, change: Changes | None, answer: Answer) -> Document:
    base = (change.base or None) if change is not None else None
    root = answer["root"]
    since = f"since {base[:12]}" if base else "in the working folder"
    if answer["files"] == []:
        message = f"no test file changed {since}, and none imports what changed; name tests to run them: "
        return _without_tests(wanted, base, "nothing", message + "halstream verify tests", root)
    if answer["code"] == _NO_TESTS:
        named = " ".join(wanted.paths or answer["files"] or ())
        message = f"pytest found no test in {named}; its files are test_*.py and its functions test_*"
        return _without_tests(wanted, base, "error", message, root)
    findings = _findings(answer, wanted)
    explained = {test for one in findings if one["level"] == "error" for test in one["tests"]}
    failures: list[Failure] = [
        {"test": test, "text": text} for test, text in answer["failures"].items() if test not in explained
    ]
    counts = list(answer["outcomes"].values())
    document: Document = {
        **_without_tests(wanted, base, "error", "", root),
        "tests": {
            "files": [_relative(file, root) for file in answer["files"]] if answer["files"] else None,
            "passed": counts.count("passed"), "failed": counts.count("failed"), "skipped": counts.count("skipped"),
        },
        "findings": findings,
        "failures": failures,
        "patches": [_proven(one, wanted.schedules) for one in answer["patches"]],
        "unproven": [{"test": test, "why": why} for test, why in answer["unproven"].items()],
    }  # fmt: skip
    _judge(document, answer)
    return document


def _judge(document: Document, answer: Answer) -> None:
    """Fill in the verdict and the sentence about it."""
    wrong = [one for one in document["findings"] if one["level"] == "error"]
    ran = sum(document["tests"][name] for name in ("passed", "failed", "skipped"))
    under = f"{ran} test(s) under the sanitizer and {document['schedules']} schedules"
    if answer["uncollected"]:
        document["verdict"] = "error"
        document["message"] = f"{', '.join(answer['uncollected'])} cannot be collected: see failures"
    elif wrong or document["failures"]:
        document["verdict"] = "fail"
        parts = [f"{len(wrong)} finding(s)"] * bool(wrong)
        parts += [f"{len(document['failures'])} other failure(s)"] * bool(document["failures"])
        parts += [f"{len(document['patches'])} proven patch(es)"] * bool(wrong)
        document["message"] = f"{', '.join(parts)} in {under}"
    else:
        document["verdict"] = "pass"
        document["message"] = f"nothing is wrong in {under}"


def _findings(answer: Answer, wanted: Wanted) -> list[Finding]:
    """Return what was found, each once for all tests in which it was."""
    root = answer["root"]
    found: dict[tuple[object, ...], Finding] = {}
    for one in answer["results"]:
        ident = fingerprint(one, root)
        place = one["place"] or {"line": 0}
        key = ident, place["line"], *(access["line"] for access in one["accesses"])
        if key in found:
            known = found[key]
            known["tests"] += [one["test"]] * (one["test"] not in known["tests"])
            known["count"] += one["count"]
            continue
        found[key] = _finding(one, ident, root, wanted, answer["patches"])
    return list(found.values())


def _finding(one: Result, ident: str, root: str, wanted: Wanted, patches: Sequence[Patch]) -> Finding:
    fix = one["fix"]
    proven = [number for number, patch in enumerate(patches) if one["changes"] and one["test"] in patch["tests"]]
    return {
        "id": ident,
        "code": one["code"],
        "rule": one["rule"],
        "level": one["level"],
        "title": one["title"],
        "why": one["why"],
        "text": one["text"],
        "place": _location(one["place"], root),
        "accesses": [
            {**access, "file": _relative(access["file"], root), "stream": access["stream"] or None}
            for access in one["accesses"]
        ],
        "fix": None if fix is None else {
            "code": fix["code"], "where": fix["where"], "file": _relative(fix["file"], root), "line": fix["line"],
        },
        "patch": proven[0] if proven else None,
        "tests": [one["test"]] if one["test"] else [],
        "count": one["count"],
        "suppress": one["suppression"],
        "token": one["token"],
        "replay": _replay(one, root, wanted) if one["token"] else "",
        "explain": explanation(one["code"]).partition(": ")[2],
    }  # fmt: skip


def _replay(one: Result, root: str, wanted: Wanted) -> str:
    """Return the command that runs a test again under the schedule of its token."""
    path, _, name = one["test"].partition("::")
    where = os.path.relpath(Path(root, path), wanted.folder)
    options = ["--sanitize"] + ["--torch"] * wanted.torch + ["--cuda"] * wanted.cuda
    return shlex.join(["halstream", "replay", *options, one["token"], f"{where}::{name}"])


def _proven(one: Patch, schedules: int) -> Proven:
    return {**one, "schedules": schedules}


def _location(place: Place | None, root: str) -> Location | None:
    if place is None:
        return None
    return {"file": _relative(place["file"], root), "line": place["line"], "function": place["function"]}


def _relative(file: str, root: str) -> str:
    """Return a file's path from the root, the whole path where it is elsewhere, '' for none."""
    path = os.path.abspath(file) if file else ""
    return path[len(root) + 1 :].replace(os.sep, "/") if path.startswith(root + os.sep) else path
