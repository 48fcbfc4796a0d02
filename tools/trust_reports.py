"""Rows for what takes long: reports of many findings, and programs whose memory is watched by its pages."""

from __future__ import annotations

import os
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


def _overlap(mode: str) -> float:
    """Return how long examples/overlap.py takes; it leaves waits out on purpose, which a sanitizer may report."""
    env = {**os.environ, "HALSTREAM_SANITIZE": mode}
    program = str(Path(__file__).resolve().parent.parent / "examples" / "overlap.py")
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=600, env=env)
    took = time.perf_counter() - begin
    if done.returncode not in (0, 66):
        raise RuntimeError(done.stderr[-300:])
    return took


def pages_cost(quick: bool) -> list[Figure]:
    """The overlap example with and without the pages of memory watched, in turns."""
    what = "`examples/overlap.py` with `HALSTREAM_SANITIZE=1,pages`, against without, in turns"
    try:
        ratios = []
        for _ in range(1 if quick else 5):
            plain = _overlap("0")
            ratios.append(_overlap("1,pages") / plain)
    except RuntimeError as exc:
        return [Figure(what, "at most 2", f"not possible: {exc}", False)]
    ratio = statistics.median(ratios)
    got = f"{ratio:.2f} (from {min(ratios):.2f} to {max(ratios):.2f})"
    return [Figure(what, "at most 2", got, ratio <= 2)]


if __name__ == "__main__":
    for figure in many_findings("--quick" in sys.argv):
        print(f"{'yes   ' if figure.reached else 'MISSED'} {figure.what}: {figure.got} (asked: {figure.asked})")
