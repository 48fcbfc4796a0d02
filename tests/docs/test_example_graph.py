"""The example of a pipeline as a graph: both ways give the right frames, and the graph is drawn."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "graph.py"


def run(*words: str, path: str) -> str:
    """Run the program with a search path for commands; return what it printed."""
    command = [sys.executable, "-W", "error", str(PROGRAM), "--frames", "3", *words]
    ran = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.needs("host")
def test_both_ways_are_right_and_the_graph_is_written(tmp_path: Path) -> None:
    shown = run("--picture", str(tmp_path / "picture"), path=str(tmp_path))
    assert re.findall(r"(?m)^ok +(\w+): 3 of 3 frames are right$", shown) == ["enqueued", "graph"]
    text = (tmp_path / "picture.dot").read_text()
    nodes, edges = map(int, re.findall(r"^(\d+) nodes, (\d+) edges", shown)[0])
    assert text.count("label=") == nodes == 24
    assert text.count("->") == edges


@pytest.mark.needs("host")
def test_the_graph_is_drawn_where_dot_is_installed(tmp_path: Path) -> None:
    dot = tmp_path / "dot"
    dot.write_text(f"#!{sys.executable}\nimport sys\nprint('drawn with', sys.argv[1:], len(sys.stdin.read()) > 100)\n")
    dot.chmod(0o755)
    run("--picture", str(tmp_path / "picture"), path=str(tmp_path))
    assert (tmp_path / "picture.svg").read_text() == "drawn with ['-Tsvg'] True\n"
