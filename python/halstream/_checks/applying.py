"""Suggested lines that are tried on copies of the source: what can be tried, and what comes of it in words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .patch import changed
from .results import Result

__all__ = ["NOT_PROVEN", "Verdict", "files_of", "sources_of", "unordered", "verdict"]


class Verdict(NamedTuple):
    """What became of a program or a test with the suggested lines."""

    text: str
    proven: bool = False  #: it was silent, and passed under all schedules

    def __str__(self) -> str:
        return self.text


#: Where a finding has no suggested line, or none that can be inserted.
NOT_PROVEN = Verdict("no fix is proven for all that is found in it")


def unordered(results: Iterable[Result]) -> list[Result]:
    """Return the results that a line can repair: accesses without order."""
    return [one for one in results if one["rule"] in ("race", "refill")]


def sources_of(results: Iterable[Result]) -> dict[str, str]:
    """Return the source of each file with the suggested lines of results."""
    return {file: after for file, (_, after) in changed(results).items()}


def files_of(results: Iterable[Result]) -> set[str]:
    """Return the files that the suggested lines of results go into."""
    return {os.path.abspath(change["file"]) for one in results for change in one["changes"]}


def verdict(files: set[str], loaded: Sequence[str], why: str, schedules: int) -> Verdict:
    """Return what became of a program with the lines.

    Parameters
    ----------
    files : set of str
        That the lines go into.
    loaded : sequence of str
        Those of them that were loaded.
    why : str
        How it failed; '' if it did not.
    schedules : int
        Under how many it was run.
    """
    missing = sorted(files - set(loaded))
    if missing:
        return Verdict(f"not tried: {', '.join(missing)} was not loaded as source")
    if not why:
        return Verdict(f"silent and passes under {schedules} schedules", proven=True)
    return Verdict("still fails: " + why.strip().replace("\n", "\n    "))
