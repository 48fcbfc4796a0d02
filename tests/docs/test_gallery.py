"""The gallery shows what the examples print, every line of it; only figures and drawings may differ."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text()
#: Name -> options with which it ends soon and prints the same lines.
PROGRAMS = {
    "graph": ["--frames", "3"],
    "overlap": ["--rounds", "1", "--chunk", "64"],
    "pipeline": ["--rounds", "1", "--limit", "1"],
    "probes": [],
    "torch_streams": [],
}


def masked(text: str) -> list[str]:
    """Return the lines with figures and drawings replaced, and one line for rows that then are the same."""
    lines: list[str] = []
    for line in text.splitlines():
        line = re.sub(r"\|.*\||[\d.]*\d", "#", line)
        line = " ".join(line.split())
        if not lines or line != lines[-1] or "#" not in line:
            lines.append(line)
    return lines


def test_the_gallery_shows_these_examples() -> None:
    assert set(re.findall(r"<!-- (\w+): end -->", PAGE)) == set(PROGRAMS)


@pytest.mark.needs("host")
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_gallery_has_every_line_that_the_example_prints(name: str, tmp_path: Path) -> None:
    options = list(PROGRAMS[name])
    if name == "overlap":
        samples = tmp_path / "samples"
        samples.write_bytes(os.urandom(1 << 20))
        options.insert(0, str(samples))
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=55)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ((shown),) = re.findall(rf"(?s)<!-- {name}:[^\n]* -->\n\n```text\n(.*?)```\n\n<!-- {name}: end -->", PAGE)
    assert masked(shown) == masked(ran.stdout)


def test_a_timeline_is_drawn_with_a_row_for_each_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from _timeline import Span, svg

    text = svg([Span("in", 7, 0.0, 1.0), Span("out", 7, 1.5, 2.0)], ["in", "out"])
    assert re.findall(r"<title>(.*)</title>", text) == [
        "in of chunk 7: 0.00 to 1.00 ms",
        "out of chunk 7: 1.50 to 2.00 ms",
    ]
    (first, second) = [float(x) for x in re.findall(r'<rect x="([\d.]+)"', text)]
    (one, two) = [float(w) for w in re.findall(r'width="([\d.]+)" height', text)]
    assert second >= first + one and one == pytest.approx(2 * two, rel=0.01)
