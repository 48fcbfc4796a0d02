"""Runs the examples and writes docs/gallery.md with what they print, and the pictures that they draw.

Usage: python tools/gallery.py [--only NAME ...]

Between the marks of an example stands its output; the text around them is kept. Pictures go into docs/pictures.
The graph is drawn by graphviz's program dot, which `make gallery` installs. Figures are those of the machine it ran on.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "pictures"
LIMIT = 600


def commands(text: str) -> dict[str, list[str]]:
    """Return the command of each example on the page, by the name of its program."""
    found = re.findall(r"(?m)^<!-- (\w+):((?: [^>\s]+)*) -->$", text)
    return {name: words.split() for name, words in found if words.split() != ["end"]}


def output(name: str, words: list[str]) -> str:
    """Run an example with the options of the page; return what it printed."""
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    if ran.returncode:
        raise SystemExit(f"{name} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def draw_graph() -> None:
    """Draw the graph of examples/graph.py."""
    with tempfile.TemporaryDirectory() as folder:
        # Without a search path for dot it writes the graph's text, whose places are made relative here.
        command = [sys.executable, str(ROOT / "examples" / "graph.py"), "--frames", "1", "--picture", f"{folder}/graph"]
        subprocess.run(command, env={"PATH": folder}, check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)
        text = Path(folder, "graph.dot").read_text().replace(f"{ROOT}/", "")
    done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    (PICTURES / "graph.svg").write_text(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these examples")
    only = parser.parse_args().only
    text = PAGE.read_text()
    for name, words in commands(text).items():
        if only and name not in only:
            continue
        picture = ["--picture", str(PICTURES / "overlap.svg")] if name == "overlap" else []
        shown = output(name, [*words, *picture])
        begin = f"<!-- {' '.join([name + ':', *words])} -->\n"
        head, _, rest = text.partition(begin)
        _, end, tail = rest.partition(f"<!-- {name}: end -->")
        text = f"{head}{begin}\n```text\n{shown.rstrip()}\n```\n\n{end}{tail}"
        if name == "graph":
            draw_graph()
        print(f"gallery: {name}", flush=True)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
