"""V28, V43, V44: graphs with a missing wait are reported with the lines of the nodes, and their twins are not."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from graph_programs import BEGIN, BETWEEN, INSIDE, OBSERVED, Program
from sanitize_help import run

pytestmark = pytest.mark.needs("graphs")


def named(program: list[Program]) -> Any:
    return pytest.mark.parametrize("program", program, ids=lambda one: one.name)


def written(program: Program, wait: str) -> str:
    text = textwrap.dedent(program.text).replace("{wait}", wait)
    return BEGIN + text + "hs.synchronize()\n"


def line(source: str, comment: str) -> int:
    """Return the number of the line with a comment."""
    return next(n for n, text in enumerate(source.splitlines(), 1) if text.endswith(f"# {comment}"))


def check(program: Program, folder: Path) -> Any:
    """Run both; return what was found in the wrong one."""
    source = written(program, "pass")
    (found,) = run(folder / "wrong.py", source)
    for access, comment in zip((found.first, found.second), program.lines, strict=True):
        if comment:
            frames = (access.node or access).frames
            assert frames[0].line == line(source, comment), str(found)
    assert not run(folder / "right.py", written(program, program.wait))
    return found


@named(INSIDE[:3])
def test_V28_in_a_capture(program: Program, backend: str, tmp_path: Path) -> None:
    if backend != "host" and "call(clear, x" in program.text:
        pytest.skip("a Python function cannot see a device's memory")
    assert check(program, tmp_path).why == "no path in the graph"


@named(INSIDE[3:])
def test_V43_in_a_graph_that_was_built(program: Program, backend: str, tmp_path: Path) -> None:
    found = check(program, tmp_path)
    assert found.why == "no path in the graph"
    assert "the graph has no path of edges between the two" in str(found)


@named(BETWEEN)
def test_V44_between_launches(program: Program, backend: str, tmp_path: Path) -> None:
    found = check(program, tmp_path)
    assert found.why != "no path in the graph"
    assert "of the launch" in str(found)


@named(OBSERVED)
@pytest.mark.needs("host")
def test_V44_what_only_a_schedule_shows(program: Program, backend: str, tmp_path: Path) -> None:
    assert "of the launch" in str(check(program, tmp_path))


def test_V43_a_pair_is_reported_once(backend: str, tmp_path: Path) -> None:
    program = INSIDE[0]
    again = "run = graph.instantiate()\nrun.update(graph)\nfor _ in range(3): run.launch(main)\ngraph.instantiate()\n"
    (found,) = run(tmp_path / "again.py", written(program, "pass") + again)
    assert found.pairs == 1
