"""A page with what the tools found, for a browser: one file that loads nothing else."""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

from .. import __version__
from .edit import lines_of
from .patch import source_of
from .results import RULES, Change, Place, Result

__all__ = ["page"]

#: Lines of the source that are shown on either side of a place, and around a change.
_AROUND, _CONTEXT = 4, 3
#: Characters of a line, and of a report's text, that are kept.
_WIDE, _TEXT = 300, 6000
_FOOTER = (
    "halstream {version}. Boxes are drawn in the order of the calls, or of the run for a schedule: how long an "
    "operation takes is not known. Of each finding at most {most} operations near it are drawn; a dotted line says "
    "how many were left out."
)
_MOST = 24


def page(results: Sequence[Result], root: str) -> str:
    """Return the page; places are relative to `root` where they are in there."""
    content = _Content(root)
    ordered = sorted(results, key=lambda one: [*RULES].index(one["rule"]))
    shown = [content.result(one) for one in ordered]
    data = {"results": shown, "files": content.names, "lines": content.lines}
    counts = Counter(one["rule"] for one in ordered)
    title = f"{len(ordered)} finding{'s' * (len(ordered) != 1)} of streams"
    here = resources.files(__package__) / "template"
    return Template((here / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(f"{title} · halstream"),
        heading=html.escape(title),
        counts=html.escape(", ".join(f"{n:,} {_words(RULES[rule].name)}" for rule, n in counts.items()) or "Nothing."),
        list="\n".join(content.entry(i, one) for i, one in enumerate(ordered)),
        footer=html.escape(_FOOTER.format(version=__version__, most=_MOST)),
        style=(here / "page.css").read_text(encoding="utf-8"),
        script="\n".join((here / name).read_text(encoding="utf-8") for name in ("drawing.js", "page.js")),
        data=_embedded(data),
    )


def _embedded(data: Any) -> str:
    """Return JSON that no text in it can end or turn into markup."""
    text = json.dumps(data, separators=(",", ":"))  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _words(name: str) -> str:
    """Return ``UnorderedAccess`` as words."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


class _Content:
    """Files, of which the lines around places are kept once, and what refers to them."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._numbers: dict[str, int] = {}
        self._sources: list[list[str]] = []
        self.names: list[str] = []
        self.lines: list[dict[int, str]] = []

    def _file(self, file: str) -> int:
        if file not in self._numbers:
            self._numbers[file] = len(self.names)
            path = os.path.abspath(file)
            inside = path.startswith(self._root + os.sep)
            self.names.append(path[len(self._root) + 1 :].replace(os.sep, "/") if inside else file)
            try:
                source = lines_of(source_of(path))
            except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
                source = []  # it was not a file, such as input of the interpreter
            self._sources.append(source)
            self.lines.append({})
        return self._numbers[file]

    def _line(self, number: int, line: int) -> str:
        return self._sources[number][line - 1].rstrip("\r\n")[:_WIDE]

    def place(self, place: Any, text: str = "") -> list[Any] | None:
        """Return a place as file, line, function and text, and keep the lines around it."""
        if place is None:
            return None
        number, line = self._file(place["file"]), place["line"]
        kept = self.lines[number]
        for one in range(max(1, line - _AROUND), min(len(self._sources[number]), line + _AROUND) + 1):
            if one not in kept:
                kept[one] = self._line(number, one)
        return [number, line, place["function"], text]

    def result(self, one: Result) -> dict[str, Any]:
        """Return a result as the script of the page takes it."""
        places = [place for place in (one["place"], *one["others"]) if place is not None]
        fix = one["fix"]
        return {
            "rule": RULES[one["rule"]].text, "title": one["title"], "text": one["text"][:_TEXT], "count": one["count"],
            "test": one["test"], "token": one["token"],
            "places": [self.place(place, place["text"]) for place in places],
            "fix": fix and {"code": fix["code"], "where": fix["where"], "proven": fix["proven"]},
            "diff": self.diff(one["changes"]),
            "timeline": self.timeline(one),
        }  # fmt: skip

    def timeline(self, one: Result) -> Any:
        """Return the operations of a result, each as a list of what its step has, in that order."""
        drawn = one["timeline"]
        if drawn is None:
            return None
        steps = []
        for step in drawn["steps"]:
            place = self.place(step["place"])
            shown = step["name"][:_WIDE], step["kind"], int(step["small"]), step["row"], place and place[:3]
            steps.append([*shown, step["mark"], step["after"], step["number"]])
        return {**drawn, "steps": steps}

    def diff(self, changes: Sequence[Change]) -> str:
        """Return changes as a patch. They add a line, or change one, so that each is one piece of it."""
        parts: list[str] = []
        names: list[str] = []
        for change in sorted(changes, key=lambda one: (one["file"], one["line"])):
            number = self._file(change["file"])
            name, line, most = self.names[number], change["line"], len(self._sources[number])
            if not 1 <= line <= most + 1:
                continue
            within = change["column"] >= 0
            first, last = max(1, line - _CONTEXT), min(most, line + _CONTEXT - 1 + within)
            before = [f" {self._line(number, at)}" for at in range(first, line)]
            behind = [f" {self._line(number, at)}" for at in range(line + within, last + 1)]
            n = len(before) + len(behind)
            more = [f"+{change['text'].rstrip()}"]
            if within:
                old, at = self._line(number, line), change["column"]
                more = [f"-{old}", f"+{old[:at]}{change['text']}{old[at:]}"]
            parts += [f"--- a/{name}", f"+++ b/{name}"] if name not in names[-1:] else []
            names.append(name)
            parts += [f"@@ -{first},{n + within} +{first},{n + 1} @@", *before, *more, *behind]
        return "\n".join(parts)

    def entry(self, index: int, one: Result) -> str:
        """Return a result in the list of all."""
        place: Place | None = one["place"]
        where = f"{self.names[self._file(place['file'])]}:{place['line']}" if place else ""
        details = " · ".join(filter(None, [where, place["function"] if place else "", one["test"]]))
        seen = f'<span class="seen">seen {one["count"]:,} times</span>' if one["count"] > 1 else ""
        kind = _words(RULES[one["rule"]].name)
        return (
            f'<li><button type="button" data-index="{index}" data-level="{html.escape(one["level"])}">{seen}'
            f"<small>{html.escape(kind)}</small><b>{html.escape(one['title'][:_WIDE])}</b>"
            f"<small>{html.escape(details)}</small></button></li>"
        )
