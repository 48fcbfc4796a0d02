"""Finds circles of `#include` between the C and C++ files of a folder.

A source and the header of its name are one: NAME.c and NAME.h. Where what includes a file is, by others, included by
it, the files are one that was cut, or two that were not.

Usage: python tools/includes.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from imports import cycles
from source_files import ROOT, source_files

SUFFIXES = {".c", ".cc", ".cpp", ".h", ".hpp"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)

#: Circles that are there, by their folders. A circle that is gone is to be taken off the list.
LISTED: dict[str, list[list[str]]] = {}


def edges(files: Iterable[Path]) -> dict[str, set[str]]:
    """Return what the files of one folder include of it, by names without suffixes."""
    there = {path.name: path for path in files}
    found: dict[str, set[str]] = {path.stem: set() for path in there.values()}
    for path in there.values():
        for name in INCLUDE.findall(path.read_text()):
            if name in there and Path(name).stem != path.stem:
                found[path.stem].add(Path(name).stem)
    return found


def problems(root: Path, files: Iterable[Path], listed: Mapping[str, list[list[str]]]) -> list[str]:
    """Return what is wrong in a tree, a line each."""
    folders: dict[str, list[Path]] = {}
    for path in files:
        if path.suffix in SUFFIXES:
            folders.setdefault(path.parent.relative_to(root).as_posix(), []).append(path)
    found = []
    for folder, inside in sorted(folders.items()):
        circles, known = cycles(edges(inside)), listed.get(folder, [])
        found += [f"{folder}: {' and '.join(circle)} include each other" for circle in circles if circle not in known]
        gone = [circle for circle in known if circle not in circles]
        found += [f"tools/includes.py lists {' and '.join(circle)} of {folder}, which do not" for circle in gone]
    found += [f"tools/includes.py lists {folder}, which is not there" for folder in listed.keys() - folders.keys()]
    return found


def check() -> list[str]:
    """Return what is wrong in the source tree, a line each."""
    return problems(ROOT, source_files(), LISTED)


if __name__ == "__main__":
    wrong = check()
    print("\n".join(wrong) or "includes: clean")
    sys.exit(1 if wrong else 0)
