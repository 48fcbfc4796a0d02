"""Texts that are added to exceptions."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["add_note", "explanation", "point_to_page"]


def explanation(code: str) -> str:
    """Return the line that leads from a report to the page which explains it."""
    return f"explain: halstream explain {code}"


def point_to_page(exc: BaseException, code: str) -> None:
    """Let what is shown of an exception end with the line that leads to its page.

    Python 3.10 shows no notes, and gets none: the message stays as it is.
    """
    if sys.version_info >= (3, 11):
        line = explanation(code)
        if line not in getattr(exc, "__notes__", ()):
            exc.add_note(line)


def add_note(exc: BaseException, text: str) -> None:
    """Add a text to what is shown of an exception.

    Python 3.10 shows no notes. There it becomes part of the message where the
    exception has no more than that, and is printed otherwise.
    """
    add: Any = getattr(exc, "add_note", None)
    if add is not None:
        add(text)
    elif not exc.args:
        exc.args = (text,)
    elif len(exc.args) == 1 and not isinstance(exc, KeyError):
        exc.args = (f"{exc.args[0]}\n{text}",)
    else:
        exc.__notes__ = [*getattr(exc, "__notes__", []), text]  # type: ignore[attr-defined]
        print(text, file=sys.stderr)
