"""Writes the two files that `halstream lint` knows the mirrored packages from, from tests/signatures.

Usage: python tools/lint_signatures.py [--check]

signatures.txt has a line for each callable of the mirrored packages: its name and its
parameters, ``=`` behind one with a default, ``/`` and ``*`` as in Python. also.txt has
a line for each module that a dialect's names.txt lists: what else the real module has.
With ``--check`` nothing is written, and a file that would change is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "halstream"
TARGET = PACKAGE / "_lint" / "signatures.txt"
ALSO = PACKAGE / "_lint" / "also.txt"
#: A module with more names than this beside those of names.txt is written as `*`: of it nothing is certain.
#: Such modules are compiled, and have other names in each build of the package.
MANY = 60
SELF = "# tools/lint_signatures.py. A star stands for too many to be listed."
#: Names that a module makes when they are asked for; dir() has not all of them.
LAZY = {
    "cupy.cuda": "cublas cufft curand cusolver cusparse jitify nvtx_enabled",
    "torch": "has_cuda has_cudnn has_mkldnn has_mps set_vital",
}
DIALECTS = ("torch", "paddle", "mindspore", "cupy", "cuda")


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


def listed(dialect: str) -> dict[str, set[str]]:
    """Return the names of each module or class in a dialect's names.txt."""
    found: dict[str, set[str]] = {}
    for line in (PACKAGE / dialect / "names.txt").read_text().splitlines():
        if line.startswith("["):
            words = found.setdefault(line.strip("[]"), set())
        elif line and not line.startswith("#"):
            words.update(line.partition(":")[2].split() if not line.startswith(" ") else line.split())
    return found


def also() -> str:
    """Return what also.txt has to have."""
    recorded = json.loads((ROOT / "tests" / "signatures" / "modules.json").read_text())
    lines = ["# What else the mirrored packages' modules have, as the modules that they import; written by", SELF]
    for dialect in DIALECTS:
        known = listed(dialect)
        for module in sorted(known.keys() & recorded["names"].keys()):
            parts = (recorded["names"][module], recorded["modules"].get(module, ""), LAZY.get(module, ""))
            more = [
                name
                for name in {*" ".join(parts).split()}
                if name not in known[module] and f"{module}.{name}" not in known
            ]
            if more:
                lines.append(f"{module}: {'*' if len(more) > MANY else ' '.join(sorted(more))}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check the files."""
    wrong = 0
    for path, wanted in ((TARGET, text()), (ALSO, also())):
        if "--check" not in sys.argv[1:]:
            path.write_text(wanted)
        elif path.read_text() != wanted:
            print(f"{path.relative_to(ROOT)} is out of date: run tools/lint_signatures.py", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
