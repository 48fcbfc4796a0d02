"""Lists the files of the source tree: those that git knows or would add, or all that an unpacked sdist holds.

Usage: python tools/source_files.py [SUFFIX ...] prints the names, one a line, of files with these suffixes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What .gitignore names, for a tree that git does not know.
FOLDERS = {
    "build", "dist", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis",
}  # fmt: skip
SUFFIXES = {".so", ".test", ".prof"}
GENERATED = {
    Path("python/halstream/_halstream.pyi"),
    Path("python/halstream/_native/_constants.py"),
    Path("python/halstream/acl/_ascendcl.py"),
    Path("python/halstream/_record_types.py"),
    Path("python/halstream/_native/_functions.pyi"),
}


def git(*words: str, root: Path) -> str | None:
    """Return what git prints, None where there is no git or no checkout."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout


def source_files(root: Path = ROOT) -> list[Path]:
    """Return the tree's files, without what a build makes."""
    top = git("rev-parse", "--show-toplevel", root=root)
    # Not the checkout of something else that the tree was unpacked in.
    if top is not None and Path(top.strip()).resolve() == root.resolve():
        names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", root=root)
        return [root / name for name in (names or "").split("\0") if name and (root / name).is_file()]
    found = []
    for folder, inside, names_here in os.walk(root):
        inside[:] = sorted(n for n in inside if n not in FOLDERS and not n.endswith(".egg-info"))
        if Path(folder) == root:  # of an sdist that is being made
            inside[:] = [n for n in inside if not n.startswith("halstream-")]
        inside[:] = [n for n in inside if not (n == "rapid" and Path(folder).name == "testdata")]
        here = (Path(folder) / n for n in sorted(names_here) if Path(n).suffix not in SUFFIXES)
        found += [path for path in here if path.relative_to(root) not in GENERATED]
    return found


if __name__ == "__main__":
    for path in source_files():
        if not sys.argv[1:] or path.suffix in sys.argv[1:]:
            print(path.relative_to(ROOT))
