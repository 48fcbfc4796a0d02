"""Writes the signatures that `halstream lint` checks calls against, from tests/signatures.

Usage: python tools/lint_signatures.py [--check]

The file has a line for each callable of the mirrored packages: its name and its
parameters, ``=`` behind one with a default, ``/`` and ``*`` as in Python. With
``--check`` nothing is written, and a file that would change is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python" / "halstream" / "_lint" / "signatures.txt"
DIALECTS = ("torch", "paddle", "mindspore", "cupy")


def parameters(listed: list[list[Any]]) -> str:
    """Return parameters in one line of text."""
    words = []
    keyword_only = False
    for index, (name, kind, default) in enumerate(listed):
        if kind == "KEYWORD_ONLY" and not keyword_only:
            words.append("*")
        keyword_only = keyword_only or kind in ("KEYWORD_ONLY", "VAR_POSITIONAL")
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(kind, "")
        words.append(stars + name + ("=" if default is not None and not stars else ""))
        if kind == "POSITIONAL_ONLY" and (index + 1 == len(listed) or listed[index + 1][1] != kind):
            words.append("/")
    return " ".join(words)


def text() -> str:
    """Return what the file has to have."""
    lines = ["# The parameters of the mirrored packages' callables; written by tools/lint_signatures.py."]
    for dialect in DIALECTS:
        data = json.loads((ROOT / "tests" / "signatures" / f"{dialect}.json").read_text())
        lines.append(f"# {dialect} {data['version']}")
        for name, found in sorted(data["names"].items()):
            if "params" in found and "overloads" not in found and not name.rpartition(".")[2].startswith("_"):
                lines.append(f"{name}: {parameters(found['params'])}".rstrip())
            else:
                lines.append(name)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check the file."""
    wanted = text()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(wanted)
    elif TARGET.read_text() != wanted:
        print(f"{TARGET.relative_to(ROOT)} is out of date: run tools/lint_signatures.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
