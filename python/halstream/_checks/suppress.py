"""Suppression files: rules for reports that the sanitizer leaves out.

One rule per line; what follows a ``#`` at the start of a line, or behind a
space, is a comment. A rule is ``KIND:PATH``, ``KIND:PATH:LINE`` or
``KIND:PATH:FUNCTION``:

* KIND is ``race``, ``query``, ``timing``, ``refill``, ``undeclared``, or ``any``;
* PATH is the end of a file's path, from a separator on; ``*``, ``?`` and
  ``[...]`` stand for other characters, as in a shell;
* LINE is a line's number, FUNCTION the name of a function, with its class
  (``Loader.fill``), and with the same wildcards.

A rule suppresses a report if a frame of either operation's stack fits it.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .._errors import InvalidValueError

__all__ = ["KINDS", "Rule", "Rules", "from_environment", "load", "rules_of"]

#: What a rule can be about.
KINDS = ("race", "query", "timing", "refill", "undeclared", "any")

_FORM = f"a rule is KIND:PATH, KIND:PATH:LINE or KIND:PATH:FUNCTION, with KIND one of {', '.join(KINDS)}"


class Rule(NamedTuple):
    """A line of a suppression file."""

    kind: str
    path: str
    line: int  #: 0 for any
    function: str  #: '' for any
    origin: str  #: where the rule was read, for messages

    def fits(self, kind: str, frames: Iterable[tuple[str, int, str]]) -> bool:
        """Return True if a report of a kind has a frame (file, line, function) that fits."""
        return self.kind in (kind, "any") and any(self._frame(*frame) for frame in frames)

    def _frame(self, file: str, line: int, function: str) -> bool:
        return (
            self.line in (0, line)
            and (not self.function or fnmatch.fnmatchcase(function, self.function))
            and (fnmatch.fnmatchcase(file, self.path) or fnmatch.fnmatchcase(file, "*/" + self.path))
        )

    def __str__(self) -> str:
        rest = self.function or (str(self.line) if self.line else "")
        return f"{self.kind}:{self.path}{':' if rest else ''}{rest}"


class Rules:
    """Rules in force, and how often each was used."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.used: dict[Rule, int] = dict.fromkeys(rules, 0)

    def suppress(self, kind: str, frames: Sequence[tuple[str, int, str]]) -> Rule | None:
        """Return the first rule that fits, which counts as a use of it, None if there is none."""
        for rule in self.used:
            if rule.fits(kind, frames):
                self.used[rule] += 1
                return rule
        return None


def from_environment() -> list[Rule]:
    """Return the rules of the file that ``HALSTREAM_SUPPRESSIONS`` names; it fails as `load` does."""
    path = os.environ.get("HALSTREAM_SUPPRESSIONS")
    return load(path) if path else []


def rules_of(given: str | os.PathLike[str] | Iterable[str] | None) -> list[Rule]:
    """Return the rules of a file, or of lines, and those of the environment."""
    rules: list[Rule] = []
    if isinstance(given, (str, os.PathLike)):
        rules += load(given)
    elif given is not None:
        for number, line in enumerate(given, 1):
            rule = parse(line, f"suppression {number}")
            if rule is not None:
                rules.append(rule)
    return rules + from_environment()


def load(path: str | os.PathLike[str]) -> list[Rule]:
    """Read a suppression file.

    Raises
    ------
    InvalidValueError
        If it cannot be read, or a line of it is no rule: the text names the
        file, the line and what is wrong.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise InvalidValueError(f"the suppression file {name!r} cannot be read: {reason}") from None
    rules = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        where = f"{name}:{number}"
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            raise InvalidValueError(f"{where}: the line is not UTF-8 text: {raw[:60]!r}") from None
        rule = parse(line, where)
        if rule is not None:
            rules.append(rule)
    return rules


def parse(line: str, where: str) -> Rule | None:
    """Return the rule of a line, None if it is empty or a comment."""
    text = line.strip()
    if text.startswith("#"):
        return None
    text = text.split(" #", 1)[0].strip()
    if not text:
        return None

    def wrong(why: str) -> InvalidValueError:
        return InvalidValueError(f"{where}: {why} in {text!r}; {_FORM}")

    if any(ord(c) < 32 for c in text):
        raise wrong("there is a control character")
    kind, colon, rest = text.partition(":")
    if not colon:
        raise wrong("there is no colon")
    if kind not in KINDS:
        raise wrong(f"{kind!r} is no kind of report")
    path, colon, last = rest.partition(":")
    if not path:
        raise wrong("there is no path")
    if colon and not last:
        raise wrong("nothing stands behind the last colon")
    if ":" in last:
        raise wrong("there are too many colons")
    if last.isdecimal() and last.isascii():
        if int(last) == 0:
            raise wrong("lines are counted from 1")
        return Rule(kind, path, int(last), "", where)
    if last[:1] in ("-", "+") or last[:1].isdigit():
        raise wrong(f"{last!r} is neither a line's number nor a function's name")
    return Rule(kind, path, 0, last, where)
