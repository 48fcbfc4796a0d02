"""Rows for large reports: how long many findings take, and that twice as many take about twice as long."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import halstream as hs
from trust_rows import Figure, repeat, within

#: Places with a missing wait in each function of a program: files are long, functions are not.
_IN_ONE = 20


def _program(places: int) -> str:
    place = "    x = hs.empty(8)\n    x.fill(1, a)\n    x.fill(2, b)\n"
    functions = "".join(f"def part{i}():\n{place * _IN_ONE}part{i}()\n" for i in range(places // _IN_ONE))
    return f"import halstream as hs\na, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)\n{functions}"


def _report(file: Path, places: int) -> float:
    """Return how long it takes to say what was found, from the end of the program on."""
    source = _program(places)
    file.write_text(source)
    code = compile(source, str(file), "exec")
    with hs.sanitize(on="collect") as report:
        exec(code, {"__name__": "program"})
        begin = time.perf_counter()
    text = str(report)
    took = time.perf_counter() - begin
    assert text.count("unordered access: two operations") == places, "each is in the text"
    return took


def many_findings(quick: bool) -> list[Figure]:
    """2,000 findings in one file."""
    n = repeat(quick, 2000)
    with tempfile.TemporaryDirectory() as folder:
        program, out = Path(folder, "program.py"), Path(folder, "out.json")
        program.write_text(_program(n))
        command = [sys.executable, "-m", "halstream", "run", "--sanitize", "--report", f"json:{out}", str(program)]
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True, timeout=600)
        took = time.perf_counter() - begin
        assert done.returncode == 1 and out.stat().st_size > 1000 * n, "each is in the file"
        ratios = []
        for i in range(3):  # in turns, so that both see the same machine
            once = _report(Path(folder, f"once{i}.py"), n)
            ratios.append(_report(Path(folder, f"twice{i}.py"), 2 * n) / once)
    ratio = statistics.median(ratios)
    return [
        within(f"{n:,} findings of one file in a process with `--report json`, from its start to its end", took, 5),
        Figure("time to report twice as many findings, against once", "at most 2.6", f"{ratio:.2f}", ratio <= 2.6),
    ]


if __name__ == "__main__":
    for figure in many_findings("--quick" in sys.argv):
        print(f"{'yes   ' if figure.reached else 'MISSED'} {figure.what}: {figure.got} (asked: {figure.asked})")
