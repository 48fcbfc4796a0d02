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
from halstream._checks.edit import apply, edits
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
def test_V10_the_lines_for_a_program_of_the_corpus_silence_it(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = broken(program.load())
    assert found
    changes = [edits(remedy(finding)) for finding in found]
    assert all(changes), [finding.text for finding in found]
    made = [one for several in changes for one in several]
    name = f"fixed_{program.name}"
    shutil.copytree(Path(corpus.__file__).parent, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in {one.file for one in made}:
        copy = tmp_path / name / Path(file).name
        copy.write_text(apply(copy.read_text(), [one for one in made if one.file == file]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    again = broken(importlib.import_module(f"{name}.{program.name}"))
    assert not again, f"{made}\n{again}"


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
        pytest.param(
            """
            for _ in range(3):
                x.fill(1, a)
                x.fill(2, b)
            """,
            "b.wait(a.record())",
            id="in a loop each comes before the other",
        ),
        pytest.param(
            """
            event = hs.Event()
            a.record(event)
            def fill(s): x.fill(1, s)
            fill(a)
            a.record(event)
            b.wait(a.record())
            a.record(event)
            x.fill(2, a)
            hs.Stream(non_blocking=True).wait(event)
            fill(b)
            """,
            "b.wait(a.record())",
            id="an event that was recorded too early as well",
        ),
    ],
)
def test_a_line_is_valid_where_it_goes(tmp_path: Path, source: str, line: str) -> None:
    program = HEAD + textwrap.dedent(source)
    report = run(tmp_path / "before.py", program)
    (finding,) = report.races
    found = remedy(finding)
    assert "<" not in found.line and (not line or found.line == line), finding.text
    changes = edits(found)
    assert changes
    again = run(tmp_path / "after.py", apply((tmp_path / "before.py").read_text(), changes))
    assert not again.races, f"{changes}\n{again}"


def test_V10_a_line_at_which_the_program_would_stop_is_not_suggested(tmp_path: Path) -> None:
    """The host opens the gate behind the second access: only the stream may wait for the first one."""
    program = HEAD + textwrap.dedent(
        """
        from halstream.testing import Gate
        class Lane:
            def __init__(self): self.stream = hs.Stream(non_blocking=True)
            def work(self, value): x.fill(value, self.stream)
        class Other:
            def __init__(self): self.stream = hs.Stream(non_blocking=True)
            def work(self, value): x.fill(value, self.stream)
        def lanes():
            one, two = Lane(), Other()
            return Gate(one.stream), one.work, two.work
        gate, first, second = lanes()
        first(1)
        second(2)
        gate.open()
        """
    )
    (finding,) = run(tmp_path / "gate.py", program).races
    assert not finding.fix and "without stopping the program" in finding.text, finding.text
    assert "made at" in finding.text.partition("fix:")[2], "what no name stands for is said by where it was made"


def test_V10_a_line_is_not_suggested_where_it_orders_nothing(tmp_path: Path) -> None:
    """The program calls two other streams by the names that the line would use, when it reaches the place."""
    program = HEAD + textwrap.dedent(
        """
        for _ in range(2):
            x.fill(1, a)
        for _ in range(2):
            x.fill(2, b)
        """
    )
    (finding,) = run(tmp_path / "loops.py", program).races
    assert "\n       and " not in finding.text, finding.text
    (both,) = run(tmp_path / "loop.py", HEAD + "for _ in range(2):\n    x.fill(1, a)\n    x.fill(2, b)\n").races
    assert "\n       and before " in both.text and "a.wait(b.record())" in both.text, both.text
