"""What a check of a file finds, and the comments that silence it."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["RULES", "Finding", "silenced"]

#: What each rule is about.
RULES = {
    "HS001": "the file cannot be read as Python",
    "HS101": "a module does not have this name",
    "HS102": "objects of a class do not have this attribute",
    "HS103": "a callable does not take these arguments",
    "HS201": "cupy: use() before a with block is forgotten when the block ends",
    "HS202": "mindspore: StreamCtx binds None",
    "HS203": "a priority that this package does not know, or takes for another one",
    "HS204": "torch: memory that a side stream reads may be reused without record_stream",
    "HS205": "elapsed time of an event that was made without timing",
    "HS206": "acl: an event that stays set is waited for in a loop without reset_event",
    "HS207": "True or False where the device of a stream goes",
    "HS301": "a stream waits for itself, also as the current stream of its own block",
    "HS302": "a wait for the stream that was current, or the default one, when the object was made",
    "HS303": "what a copy to the CPU without blocking brings is read before anything waits for it",
}


class Finding(NamedTuple):
    """One place of a file that a rule is about."""

    file: str
    line: int
    column: int  #: from 1
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.rule} {self.text}"


_COMMENT = re.compile(r"#\s*(?:noqa|halstream:\s*ignore)\b(?:\s*:\s*|\[)?([A-Z0-9, ]*)", re.IGNORECASE)


def silenced(line: str, rule: str) -> bool:
    """Return whether a comment of a source line silences a rule: ``# noqa``, or ``# noqa: HS101``."""
    for found in _COMMENT.finditer(line):
        rules = re.findall(r"[A-Z]+[0-9]+", found[1].upper())
        if not rules or rule in rules:
            return True
    return False
