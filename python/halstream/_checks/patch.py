"""The lines that would order what was found, as changes of the program's files."""

from __future__ import annotations

import difflib
import io
import os
import tokenize
from collections.abc import Iterable
from pathlib import Path

from .edit import Edit, apply, lines_of
from .results import Result

__all__ = ["changed", "source_of", "unified"]


def changed(results: Iterable[Result]) -> dict[str, tuple[str, str]]:
    """Return the source of each file that the lines of results go into, without and with them."""
    by_file: dict[str, list[Edit]] = {}
    for one in results:
        for change in one["changes"]:
            by_file.setdefault(os.path.abspath(change["file"]), []).append(Edit(**change))
    found = {}
    for file in sorted(by_file):
        try:
            source = source_of(file)
        except (OSError, SyntaxError, UnicodeDecodeError):
            continue  # it was not a file, such as input of the interpreter
        end = "\r\n" if "\r\n" in source else "\n"
        edits = [one if one.column >= 0 else one._replace(text=one.text.rstrip("\n") + end) for one in by_file[file]]
        found[file] = source, apply(source, edits)
    return found


def source_of(file: str) -> str:
    """Return a file's source with its own ends of lines."""
    data = Path(file).read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def unified(results: Iterable[Result], root: str) -> str:
    """Return a patch with paths from `root`, for ``git apply``; '' where there is nothing to change."""
    lines: list[str] = []
    for file, (before, after) in changed(results).items():
        name = os.path.relpath(file, root) if file.startswith(root + os.sep) else file.lstrip(os.sep)
        name = name.replace(os.sep, "/")
        lines += difflib.unified_diff(lines_of(before), lines_of(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
