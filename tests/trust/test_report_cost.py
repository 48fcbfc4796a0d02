"""What reports cost: work in proportion to the findings, and one report for what is seen again and again."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._checks import proving
from sanitize_help import run

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

HEAD = """
import halstream as hs
a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
"""


def work(report: hs.Report) -> int:
    """Return how many instructions Python executes to write a report."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # CPython 3.12 looks only here whether opcodes are traced
    sys.settrace(trace)
    try:
        str(report)
    finally:
        sys.settrace(before)
    return count


def test_the_work_for_a_report_grows_with_the_number_of_findings(tmp_path: Path) -> None:
    costs = []
    for n in (30, 120):
        lines = "".join(f"x{i} = hs.empty(8)\nx{i}.fill(1, a)\nx{i}.fill(2, b)\n" for i in range(n))
        report = run(tmp_path / f"program{n}.py", HEAD + lines)
        assert len(report) == n
        assert f"`x{n - 1}`" in report.races[-1].text
        costs.append(work(report))
    assert costs[1] < 4.5 * costs[0], "four times as many findings take about four times the work"


def test_V10_the_lines_for_many_findings_look_through_their_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[ast.AST] = []
    real = ast.walk

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        walked.append(node)
        return real(node)

    monkeypatch.setattr(ast, "walk", walk)
    lines = "".join("x = hs.empty(8)\nx.fill(1, a)\nx.fill(2, b)\n" for _ in range(50))
    report = run(tmp_path / "program.py", HEAD + lines)
    assert str(report).count("  fix: before ") == len(report) >= 50
    modules = [node for node in walked if isinstance(node, ast.Module) and len(node.body) > 100]
    assert 1 <= len(modules) <= 3, "for dialects, imports and names"
    assert len(walked) < 10 * len(report)


def test_two_thousand_findings_are_all_reported(tmp_path: Path) -> None:
    lines = "".join("x = hs.empty(8)\nx.fill(1, a)\nx.fill(2, b)\n" for _ in range(2000))
    report = run(tmp_path / "program.py", HEAD + lines)
    assert len(report) == str(report).count("unordered access: two operations") == 2000
    assert str(report).count("  fix: before ") == 2000


def test_V10_the_lines_for_many_findings_are_tried_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []
    real = proving.verdicts

    def verdicts(pairs: Any) -> list[str]:
        tried.append(real(pairs))
        return tried[-1]

    monkeypatch.setattr(proving, "verdicts", verdicts)
    lines = "".join("x = hs.empty(8)\nx.fill(1, a)\nx.fill(2, b)\n" for _ in range(400))
    run(tmp_path / "program.py", HEAD + lines)
    assert tried == [["silent"] * 400]


def test_what_a_loop_repeats_is_one_report_with_a_count(tmp_path: Path) -> None:
    loop = "x = hs.empty(8)\nfor _ in range(1000):\n    x.fill(1, a)\n    x.fill(2, b)\n"
    report = run(tmp_path / "program.py", HEAD + loop)
    assert [finding.pairs for finding in report] == [1999]
    assert "  (seen 1,999 times with these stacks)" in str(report)


def test_a_report_that_was_looked_at_counts_on() -> None:
    a, b, x = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True), hs.empty(8, np.uint8)
    with hs.sanitize(on="collect") as report, hs.sanitize(on="collect") as inner:
        for _ in range(5):
            x.fill(1, a)
            x.fill(2, b)
            assert len(inner) == 1
    assert [finding.pairs for finding in inner] == [9]
    assert not report
