"""A notebook in a kernel, and how its outputs look in a browser; `make test-notebook`."""

from __future__ import annotations

import shutil
import struct
import subprocess
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = [
    "import halstream as hs\nfrom halstream.testing import record\na, b = hs.Stream(), hs.Stream()\na",
    "a.record()",
    "with record() as recorded:\n    a.delay(0.002)\n    b.wait(a.record())\n    b.delay(0.001)\nrecorded",
    "await b\nasync with a as current:\n    same = hs.current_stream() is a\nassert same",
    "with hs.capture(a) as graph:\n    a.call(print, 1)\n    a.call(print, 2)\ngraph",
    "x = hs.empty(8, 'u1')\nwith hs.sanitize(on='collect') as report:\n    x.fill(1, a)\n    x.fill(2, b)\n"
    "    await a\n    await b\nreport",
]
#: The cells whose value is shown, and what is in it.
SHOWN = {0: "halstream.Stream", 1: "halstream.Event", 2: "<svg", 4: "<svg", 5: "unordered access"}


@pytest.fixture(scope="module")
def outputs() -> dict[int, str]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    found = {}
    for number, cell in enumerate(notebook.cells):
        for output in cell.outputs:
            data: Any = output.get("data", {})
            if "text/html" in data:
                found[number] = data["text/html"]
    return found


def test_each_cell_shows_its_value(outputs: dict[int, str]) -> None:
    assert outputs.keys() == SHOWN.keys()
    for number, text in SHOWN.items():
        assert text in outputs[number]
        ET.fromstring(outputs[number])


def test_a_browser_draws_the_bars(outputs: dict[int, str], tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    assert browser, "make test-notebook installs it"
    page, image = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(f"<!DOCTYPE html><meta charset='utf-8'><body>{outputs[2]}", encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,200", f"--screenshot={image}")
    subprocess.run([browser, *options, str(page)], check=True, timeout=100, capture_output=True)
    assert colours(image.read_bytes()) & {(0x2F, 0x6F, 0xAB)}, "no bar has the colour of an operation"


def colours(png: bytes) -> set[tuple[int, ...]]:
    """Return the colours of a picture of 8 bits a channel, by the rules of PNG."""
    at, data, width, channels = 8, b"", 0, 3
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, channels = struct.unpack(">I", body[:4])[0], {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            data += body
        at += length + 12
    raw = zlib.decompress(data)
    step, before, found = width * channels, bytearray(width * channels), set()
    for start in range(0, len(raw), step + 1):
        filter_, line = raw[start], bytearray(raw[start + 1 : start + 1 + step])
        for i in range(step):
            left = line[i - channels] if i >= channels else 0
            corner = before[i - channels] if i >= channels else 0
            up = before[i]
            nearest = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
            line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest)[filter_]) & 255
        found.update(tuple(line[i : i + 3]) for i in range(0, step, channels))
        before = line
    return found
