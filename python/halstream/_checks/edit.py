"""A suggested line as a change of the source."""

from __future__ import annotations

import io
import linecache
from collections.abc import Iterable
from typing import NamedTuple

from . import source as _source
from .remedy import Remedy

__all__ = ["Edit", "apply", "edit", "edits", "lines_of"]


class Edit(NamedTuple):
    """Lines that go into a file in front of one of its lines, which are counted from 1.

    With a column, from 0 on, it is text that goes into the line in front of that character.
    """

    file: str
    line: int
    text: str
    column: int = -1


def edit(remedy: Remedy) -> Edit | None:
    """Return the change of the source that a remedy stands for, None where it names no place that can be found.

    A line goes before the first or after the last line of the statement at its place, with the statement's indentation.
    """
    if not remedy.line or remedy.place is None or remedy.where not in ("before", "after"):
        return None
    here = _source.statement(remedy.place.file, remedy.place.line)
    if here is None or here.shares_lines:
        here = _source.statement(remedy.place.file, remedy.place.line, remedy.column)
    if here is None:
        return None
    first, last, _ = here.extent
    if here.shares_lines:
        begin, end = here.columns
        if remedy.where == "before":
            return Edit(remedy.place.file, first, f"{remedy.line}; ", begin)
        return Edit(remedy.place.file, last, f"; {remedy.line}", end)
    indented = linecache.getline(remedy.place.file, first)
    indentation = indented[: len(indented) - len(indented.lstrip())]
    return Edit(remedy.place.file, first if remedy.where == "before" else last + 1, f"{indentation}{remedy.line}\n")


def edits(remedy: Remedy) -> list[Edit]:
    """Return all changes of the source that a remedy stands for, none where one of its places cannot be found."""
    found = [edit(one) for one in (remedy, remedy.also) if one is not None]
    return [] if None in found else [one for one in found if one is not None]


def lines_of(source: str) -> list[str]:
    """Return the lines of a source with their ends, as Python counts them."""
    return io.StringIO(source, newline="").readlines()


def apply(source: str, edits: Iterable[Edit]) -> str:
    """Return a file's source with changes of it; equal ones are made once."""
    lines = lines_of(source)
    # From the end on; text in a line comes before lines in front of it.
    for one in sorted(set(edits), key=lambda one: (-one.line, -one.column)):
        if one.column >= 0:
            old = lines[one.line - 1]
            lines[one.line - 1] = old[: one.column] + one.text + old[one.column :]
            continue
        if one.line > len(lines) > 0 and not lines[-1].endswith(("\n", "\r")):
            lines[-1] += "\n"
        lines.insert(one.line - 1, one.text)
    return "".join(lines)
