"""Elements of HTML and SVG whose texts and attributes are escaped.

`Markup` is text that is one already; everything else that goes into an element is
a text of the program, and is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Markup", "element", "table"]

# Characters that XML does not have, also not escaped.
_CONTROL = re.compile(f"[^\t\n\r\x20-\ud7ff\ue000-\ufffd{chr(0x10000)}-{chr(0x10FFFF)}]")


class Markup(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def _escaped(text: object) -> str:
    if isinstance(text, Markup):
        return text
    cleaned = _CONTROL.sub("\ufffd", str(text))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;")):
        cleaned = cleaned.replace(character, entity)
    return cleaned


def element(name: str, *inside: object, **attributes: object) -> Markup:
    """Return an element; ``_`` in names of attributes becomes ``-``, and is dropped at the end, as in ``class_``."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"' for key, value in attributes.items() if value != ""
    )
    return Markup(f"<{name}{given}>{''.join(_escaped(part) for part in inside)}</{name}>")


def table(title: str, rows: Iterable[tuple[str, object]]) -> Markup:
    """Return a small table of properties with a title."""
    cell = "text-align:left;padding:1px 10px 1px 0;vertical-align:top"
    lines = [
        element(
            "tr", element("th", name, style=f"{cell};font-weight:normal;opacity:.65"), element("td", value, style=cell)
        )
        for name, value in rows
    ]
    inside = element("table", *lines, style="border-collapse:collapse;margin:2px 0 0 0;font:inherit")
    return element("div", element("strong", title), inside, class_="halstream", style="font-size:13px")
