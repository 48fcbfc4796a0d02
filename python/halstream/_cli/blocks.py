"""Blocks of lines that `halstream init` adds to files: marked, so that exactly they can be taken out again."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

__all__ = ["Block", "ChangedBlockError", "found", "inserted", "without"]


class ChangedBlockError(Exception):
    """A block is not as it was written, so that it is not certain whose its lines are."""


class Block(NamedTuple):
    """Lines for a file, and what begins and ends a comment there."""

    lines: str
    begin: str = "# "
    end: str = ""


def inserted(given: str | None, block: Block, at: int | None = None) -> str:
    """Return a text with a block at a place, which begins a line; at the end if not said. None is a file to be made."""
    text = given or ""
    at = len(text) if at is None else at
    lines = block.lines.rstrip("\n") + "\n"
    # Of a text whose last line has no end the block gives it one, and notes that.
    joined = bool(text[:at]) and not text[:at].endswith("\n")
    words = f"{_digest(lines)}{' joined' * joined}{' new' * (given is None)}"
    first, last = (f"{block.begin}halstream init: {one}{block.end}\n" for one in (f"begin {words}", "end"))
    marked = "\n" * joined + first + lines + last
    if "\r\n" in text:
        marked = marked.replace("\n", "\r\n")
    return text[:at] + marked + text[at:]


def found(text: str) -> bool:
    """Return whether a text has a block."""
    return "halstream init: begin " in text


def without(text: str) -> str | None:
    """Return a text without its blocks, None where that leaves nothing of a file that was made for one.

    Raises
    ------
    ChangedBlockError
        If the lines of one, or its marks, are not as they were written.
    """
    whole = re.compile(
        r"^[^\n]*halstream init: begin (?P<digest>\w+)(?P<joined> joined)?(?P<new> new)?[^\n]*\n(?P<lines>.*?)"
        r"^[^\n]*halstream init: end[^\n]*(?:\n|\Z)",
        re.MULTILINE | re.DOTALL,
    )
    new = False
    while (match := whole.search(text)) is not None:
        if _digest(match["lines"].replace("\r\n", "\n")) != match["digest"]:
            raise ChangedBlockError("the lines that halstream init added were changed since")
        before = text[: match.start()]
        if match["joined"]:
            before = before.removesuffix("\n").removesuffix("\r")
        text = before + text[match.end() :]
        new = new or bool(match["new"])
    if found(text) or "halstream init: end" in text:
        raise ChangedBlockError("a mark of the lines that halstream init added is missing")
    return None if new and not text else text


def _digest(lines: str) -> str:
    return hashlib.sha256(lines.encode()).hexdigest()[:8]
