"""The lines that reports suggest, put into the programs as they are: nothing is reported then, and the programs end."""

from __future__ import annotations

import importlib
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import corpus
import halstream as hs
import pytest
from corpus import PROGRAMS, Program
from halstream._checks.edit import apply, edit
from halstream._checks.remedy import remedy
from halstream._core import _current
from halstream._schedules.block import schedule
from sanitize_help import run

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

CHECKED = [program for program in PROGRAMS if program.sanitize]


@pytest.fixture(autouse=True)
def leave_contexts() -> Iterator[None]:
    yield
    _current.reset()


def broken(module: ModuleType) -> hs.Report:
    """Return what is found in one run."""
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        module.broken()
    _current.reset()
    return report


@pytest.mark.parametrize("program", CHECKED, ids=lambda p: p.name)
def test_the_lines_for_a_program_of_the_corpus_silence_it(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = broken(program.load())
    assert found
    edits = [edit(remedy(finding)) for finding in found]
    assert all(edits), [finding.text for finding in found]
    name = f"fixed_{program.name}"
    shutil.copytree(Path(corpus.__file__).parent, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in {one.file for one in edits if one is not None}:
        copy = tmp_path / name / Path(file).name
        copy.write_text(apply(copy.read_text(), [one for one in edits if one is not None and one.file == file]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    again = broken(importlib.import_module(f"{name}.{program.name}"))
    assert not again, f"{edits}\n{again}"


HEAD = """
import halstream as hs
a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
x = hs.empty(8)
"""


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param(
            """
            def fill(s): x.fill(1, s)
            def go():
                fill(a)
                fill(b)
            go()
            """,
            "b.wait(a.record())",
            id="names of parameters mean another stream in each call",
        ),
        pytest.param(
            """
            streams = {}
            def make(): streams["k"] = hs.Stream(non_blocking=True)
            make()
            streams["k"].fill = x.fill
            x.fill(1, next(iter(streams.values())))
            x.fill(2, b)
            """,
            "",
            id="a stream without a name",
        ),
        pytest.param(
            """
            class One:
                def __init__(self): self.stream = hs.Stream(non_blocking=True)
                def work(self): x.fill(1, self.stream)
            class Two:
                def __init__(self): self.stream = hs.Stream(non_blocking=True)
                def work(self): x.fill(2, self.stream)
            one, two = One(), Two()
            one.work()
            two.work()
            """,
            "",
            id="self of two classes",
        ),
        pytest.param(
            """
            x.fill(
                1,
                a,
            )
            if x:
                x.fill(
                    2,
                    b,
                )
            """,
            "b.wait(a.record())",
            id="calls over several lines",
        ),
    ],
)
def test_a_line_is_valid_where_it_goes(tmp_path: Path, source: str, line: str) -> None:
    program = HEAD + textwrap.dedent(source)
    report = run(tmp_path / "before.py", program)
    (finding,) = report.races
    found = remedy(finding)
    assert "<" not in found.line and (not line or found.line == line), finding.text
    change = edit(found)
    assert change is not None
    again = run(tmp_path / "after.py", apply((tmp_path / "before.py").read_text(), [change]))
    assert not again.races, f"{change}\n{again}"
