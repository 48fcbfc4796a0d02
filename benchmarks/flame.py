"""Draws where a call's processor time goes: python -m benchmarks.flame ROW FILE.svg.

It runs the row's statement again and again under Linux's `perf`, which needs
the right to see other threads' stacks, and draws each function as wide as its
share of the samples, below the functions that it calls. For names of Go's
functions the extension must be built without `-s -w` (setup.py).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

SETUP = """
import time
begin = time.monotonic() + {delay}
import halstream as hs
import numpy as np
from halstream.torch import cuda
s = cuda.Stream()
p, d = hs.pinned_empty({size}, np.uint8), hs.empty({size}, np.uint8)
p[:] = 1
def function(): pass
d.copy_from(p, s)
s.synchronize()
time.sleep(begin - time.monotonic())  # until perf begins to count
"""
#: What is run, for each row: a statement, the pause after it, and the bytes of a copy.
ROWS = {
    "copy": ("d.copy_from(p, s); s.synchronize()", 0, 64_000_000),
    "function": ("s.call(function); s.synchronize()", 0.005, 1024),
    "round_trip": ("s.nop(); s.synchronize()", 0.005, 1024),
}
DELAY, SECONDS = 3, 8  # when imports and first calls are over, and when it ends
WIDTH, HEIGHT, LEAST = 1000, 16, 0.005  # pixels; the least share that is drawn
COLOURS = {"python": "#9ecae1", "go": "#fdae6b", "kernel": "#bdbdbd", "c": "#a1d99b"}


@dataclass
class Frame:
    """A function in a stack, and those that it called."""

    name: str
    kind: str
    samples: int = 0
    below: dict[str, Frame] = field(default_factory=dict)


def record(statement: str, pause: float, size: int) -> str:
    """Run a statement for some seconds under perf and return the stacks as text."""
    lines = [f"end = time.monotonic() + {SECONDS - DELAY}", "while time.monotonic() < end:", f"    {statement}"]
    if pause:  # the row is about work after idleness
        lines.append(f"    time.sleep({pause})")
    program = SETUP.format(delay=DELAY, size=size) + "\n".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "perf.data")
        perf = ["perf", "record", "-q", "-F", "9999", "-D", str(DELAY * 1000), "-g", "-e", "cpu-clock", "-o", data]
        subprocess.run([*perf, sys.executable, "-c", program], check=True)
        script = ["perf", "script", "-i", data, "-F", "comm,tid,ip,sym,dso"]
        return subprocess.run(script, check=True, capture_output=True, text=True).stdout


def kind_of(name: str, library: str) -> str:
    """Say in a word where a function is from."""
    if "kernel" in library or "unknown" in library:
        return "kernel"
    if "_halstream" in library:
        return "go" if "." in name else "c"
    return "python" if "python" in library else "c"


def fold(text: str) -> Frame:
    """Return all stacks as one tree."""
    root = Frame("all", "c")
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        found = [re.match(r"\s*[0-9a-f]+ (.+?) \((.+)\)$", line) for line in lines[1:]]
        frame = root
        frame.samples += bool(lines)
        # C without frame pointers leaves frames that have no name.
        for match in reversed([one for one in found if one and one[1] != "[unknown]"]):
            name = match[1].split("+0x")[0]
            frame = frame.below.setdefault(name, Frame(name, kind_of(name, match[2])))
            frame.samples += 1
    return root


def draw(root: Frame, title: str) -> str:
    """Return the tree as an SVG."""
    boxes: list[str] = []
    depth = 0

    def place(frame: Frame, x: float, level: int) -> None:
        nonlocal depth
        width = frame.samples / root.samples * WIDTH
        if width < LEAST * WIDTH:
            return
        depth = max(depth, level)
        y, room = 24 + level * HEIGHT, int(width / 6.2)
        share = f"{frame.name}: {frame.samples / root.samples:.1%}"
        label = frame.name if len(frame.name) <= room else frame.name[: max(0, room - 1)] + "…" * (room > 2)
        boxes.append(
            f'<g><title>{escape(share)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT - 1}" '
            f'fill="{COLOURS[frame.kind]}"/><text x="{x + 2:.1f}" y="{y + 11}">{escape(label)}</text></g>'
        )
        for called in sorted(frame.below.values(), key=lambda one: -one.samples):
            place(called, x, level + 1)
            x += called.samples / root.samples * WIDTH

    place(root, 0, 0)
    legend = ", ".join(f"{kind}: {colour}" for kind, colour in COLOURS.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {24 + (depth + 1) * HEIGHT}" '
        f'font-family="monospace" font-size="10"><!-- {legend} --><text x="2" y="14" font-size="12">'
        f"{escape(title)}</text>{''.join(boxes)}</svg>\n"
    )


def main() -> None:
    """Record and draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flame", description=__doc__.split("\n\n")[0])
    parser.add_argument("row", choices=sorted(ROWS))
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    statement, pause, size = ROWS[options.row]
    title = f"{statement}{', then 5 ms of pause' if pause else ''}: processor time of all threads"
    options.file.write_text(draw(fold(record(statement, pause, size)), title))


if __name__ == "__main__":
    main()
