"""The table of what each command finds: one run of every program of the corpora by the commands that README shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
sys.path[:0] = [str(TESTS)]

from corpus import PROGRAMS  # noqa: E402
from corpus.shapes import SHAPES  # noqa: E402
from corpus.synchronisation import SYNCHRONISATION  # noqa: E402

__all__ = ["COMMANDS", "command_table"]


class Case(NamedTuple):
    """A function of a corpus."""

    corpus: str
    index: int
    kind: str  #: ``broken`` or ``fixed``

    @property
    def source(self) -> str:
        """A program that calls it."""
        call = f"{self.corpus}[{self.index}].{self.kind}()"
        return f"import sys\nsys.path.insert(0, {str(TESTS)!r})\n{_IMPORTS}\n{call}\n"


_IMPORTS = (
    "from corpus import PROGRAMS\nfrom corpus.shapes import SHAPES\nfrom corpus.synchronisation import SYNCHRONISATION"
)
#: A broken program without an end is no case, nor one of the first corpus that the sanitizer need not report.
CASES = [
    *(Case("PROGRAMS", i, kind) for i, one in enumerate(PROGRAMS) for kind in ("broken", "fixed") if one.sanitize),
    *(Case("SHAPES", i, kind) for i in range(len(SHAPES)) for kind in ("broken", "fixed")),
    *(
        Case("SYNCHRONISATION", i, kind)
        for i, one in enumerate(SYNCHRONISATION)
        for kind in ("broken", "fixed")
        if kind == "fixed" or one.found != "stall"
    ),
]
_TITLES = {
    "PROGRAMS": "programs after reports of users",
    "SHAPES": "programs by shape",
    "SYNCHRONISATION": "programs that synchronise wrongly",
}
_LIMIT = 120.0


def _process(words: list[str], case: Case, **env: str) -> bool:
    """Whether a process reports something unordered or a refill, by what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.py").write_text(case.source)
        done = subprocess.run(
            [sys.executable, *words, "program.py"], cwd=folder, capture_output=True, text=True, timeout=_LIMIT,
            env={**os.environ, **env},
        )  # fmt: skip
    return bool(re.search(r"(?m)^halstream: \d+ (unordered access|refill)", done.stderr))


def _processes(words: list[str], **env: str) -> set[Case]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda case: _process(words, case, **env), CASES)
        return {case for case, reported in zip(CASES, found, strict=True) if reported}


_BLOCK = """
import json, sys
import halstream as hs
sys.path.insert(0, {tests!r})
{imports}
from halstream._core import _current
for corpus, index, kind in json.loads(sys.stdin.read()):
    with hs.sanitize(on="collect"{option}) as report:
        try:
            getattr(globals()[corpus][index], kind)()
        except AssertionError:
            pass
    _current.reset()
    print(json.dumps(bool(report)), flush=True)
"""


def _blocks(option: str = "") -> set[Case]:
    """Return the cases that `halstream.sanitize` reports, in one process for all."""
    source = _BLOCK.format(tests=str(TESTS), imports=_IMPORTS, option=option)
    done = subprocess.run(
        [sys.executable, "-c", source], input=json.dumps(CASES), capture_output=True, text=True, timeout=10 * _LIMIT
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {case for case, line in zip(CASES, done.stdout.splitlines(), strict=True) if json.loads(line)}


_TEST = """
import sys
import pytest
sys.path.insert(0, {tests!r})
{imports}
from halstream._core import _current
@pytest.fixture(autouse=True)
def leave_contexts():
    yield
    _current.reset()
@pytest.mark.parametrize("corpus, index, kind", {cases})
def test_it(corpus, index, kind):
    getattr(globals()[corpus][index], kind)()
"""


def _tests(*options: str) -> set[Case]:
    """Return the cases that the plug-in of pytest reports, each a test of one session."""
    with tempfile.TemporaryDirectory() as folder:
        source = _TEST.format(tests=str(TESTS), imports=_IMPORTS, cases=[tuple(case) for case in CASES])
        Path(folder, "test_cases.py").write_text(source)
        words = ["-m", "pytest", "-q", "-p", "no:randomly", "--tb=no", "--stream-report=json:found.json", *options]
        subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, timeout=10 * _LIMIT)
        results = json.loads(Path(folder, "found.json").read_text())["results"]
    found = (re.search(r"\[(\w+)-(\d+)-(\w+)\]", one["test"]) for one in results if one["rule"] in ("race", "refill"))
    return {Case(name[1], int(name[2]), name[3]) for name in found if name}


#: What returns the cases that a command reports.
COMMANDS: dict[str, Callable[[], set[Case]]] = {
    "`halstream.sanitize()`": _blocks,
    "`--stream-sanitize`": lambda: _tests("--stream-sanitize"),
    "`halstream run --sanitize`": lambda: _processes(["-m", "halstream", "run", "--sanitize"]),
    "`HALSTREAM_SANITIZE=1`": lambda: _processes([], HALSTREAM_SANITIZE="1"),
    "`--stream-pages`": lambda: _tests("--stream-pages"),
    "`--stream-sanitize=threads`": lambda: _tests("--stream-sanitize=threads"),
}


def command_table() -> str:
    """Return the table in Markdown."""
    found = {name: find() for name, find in COMMANDS.items()}
    lines = ["| | programs | " + " | ".join(COMMANDS) + " |", "|---" * (len(COMMANDS) + 2) + "|"]
    for what, kind in (("reported", "broken"), ("repaired twins reported", "fixed")):
        for corpus, title in _TITLES.items():
            of = {case for case in CASES if case[0] == corpus and case[2] == kind}
            counts = (str(len(of & reported)) for reported in found.values())
            lines.append(f"| {title}: {what} | {len(of)} | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"
