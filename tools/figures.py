"""Puts what a tool measured into its place in docs/reliability.md."""

from __future__ import annotations

import os
import platform
import re
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reliability.md"


def put(name: str, lines: list[str]) -> None:
    """Replace the lines between the marks of a tool; make the marks at the end if there are none."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    where = f"Measured {time.strftime('%Y-%m-%d')}, CPython {platform.python_version()}, {os.cpu_count()} cores."
    block = "\n".join([begin, *lines, "", where, end])
    text = PAGE.read_text()
    found = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    text = found.sub(lambda _: block, text) if found.search(text) else f"{text.rstrip()}\n\n## {name}\n\n{block}\n"
    PAGE.write_text(text)
