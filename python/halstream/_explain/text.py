"""The pages as text: Markdown, as a terminal and the site show it."""

from __future__ import annotations

import difflib

from .pages import PAGES

__all__ = ["UnknownCodeError", "overview", "page"]


class UnknownCodeError(LookupError):
    """There is no page of this code; the text says which ones there are."""


def page(code: str) -> str:
    """Return the page of a code.

    Raises
    ------
    UnknownCodeError
        If there is none.
    """
    found = PAGES.get(code)
    if found is None:
        close = difflib.get_close_matches(code, PAGES, 1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise UnknownCodeError(f"no report has the code {code!r}; {meant}The codes are {', '.join(sorted(PAGES))}")
    repairs = "\n".join(f"{number}. {text}" for number, text in enumerate(found.repairs, 1))
    return "\n".join(
        [
            f"# {code}",
            "",
            f"*{found.title[0].upper()}{found.title[1:]}.*",
            "",
            found.what,
            "",
            "## Three usual repairs",
            "",
            repairs,
            "",
            "## Example",
            "",
            f"`{found.command}` reports it in",
            "",
            f"```python\n{found.example.strip()}\n```",
            "",
            "and not in",
            "",
            f"```python\n{found.repaired.strip()}\n```",
            "",
        ]
    )


def overview() -> str:
    """Return a line for each code."""
    width = max(map(len, PAGES))
    return "\n".join(f"{code:{width}}  {found.title}" for code, found in sorted(PAGES.items()))
