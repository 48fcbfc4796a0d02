"""Suppression files: rules for reports that the sanitizer leaves out.

One rule per line; what follows a ``#`` at the start of a line, or behind a
space, is a comment. A rule is ``KIND:PATH``, ``KIND:PATH:LINE`` or
``KIND:PATH:FUNCTION``:

* KIND is ``race``, ``query``, ``timing``, ``refill``, ``undeclared``, ``kernel``, or ``any``;
* PATH is the end of a file's path, from a separator on; ``*``, ``?`` and
  ``[...]`` stand for other characters, as in a shell. A file of an installed
  package is meant only where PATH begins with the package's folder
  (``torch/optim/*``), or is the whole path;
* LINE is a line's number, FUNCTION the name of a function, with its class
  (``Loader.fill``), and with the same wildcards.

A rule suppresses a report if a frame of either operation's stack fits it. With
more than one place it is about fewer reports: ``race:a.py:6 < b.py:9`` needs a
frame at ``a.py:6`` and further out, of the calls that led there, one at
``b.py:9``; ``race:a.py:6 + b.py:7`` needs one place in the stack of one of the
operations and the other place in that of the other.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .. import _sites
from .._errors import InvalidValueError
from .._sites import Frame

__all__ = ["KINDS", "Place", "Rule", "Rules", "from_environment", "load", "rule_of", "rules_of"]

#: What a rule can be about.
KINDS = ("race", "query", "timing", "refill", "undeclared", "kernel", "any")

_FORM = (
    f"a rule is KIND:PATH, KIND:PATH:LINE or KIND:PATH:FUNCTION, with KIND one of {', '.join(KINDS)}; "
    "' < ' stands before a place that called, ' + ' before one of the other operation"
)

#: How many places of a stack `rule_of` gives: from its inside, and from its outside.
_INNER, _OUTER = 3, 2


class Place(NamedTuple):
    """A place of a rule."""

    path: str
    line: int = 0  #: 0 for any
    function: str = ""  #: '' for any

    def fits(self, frame: Frame) -> bool:
        """Return True if a frame is at the place."""
        return (
            self.line in (0, frame.line)
            and (not self.function or fnmatch.fnmatchcase(frame.function, self.function))
            and self._fits_file(frame.file)
        )

    def _fits_file(self, file: str) -> bool:
        package = _sites.package(file)
        if not package or self.path.startswith(os.sep):
            return fnmatch.fnmatchcase(file, self.path) or fnmatch.fnmatchcase(file, "*/" + self.path)
        # A rule for `loader.py` of the program is none for all packages with a file of that name.
        named = self.path.partition(os.sep)[0].removesuffix(".py") == package
        return named and fnmatch.fnmatchcase(_sites.installed(file), self.path)

    def __str__(self) -> str:
        rest = self.function or (str(self.line) if self.line else "")
        return f"{self.path}{':' if rest else ''}{rest}"


#: Places of one stack, from the inside on.
Side = tuple[Place, ...]


class Rule(NamedTuple):
    """A line of a suppression file."""

    kind: str
    sides: tuple[Side, ...]  #: one, which either operation may fit, or one for each
    origin: str = ""  #: where the rule was read, for messages
    library: str = ""  #: the library and its version, of a rule that ships with the package
    reason: str = ""  #: likewise: why its accesses change no result

    def fits(self, kind: str, stacks: Sequence[Sequence[Frame]]) -> bool:
        """Return True if it is about a report of a kind whose operations have these stacks."""
        if self.kind not in (kind, "any"):
            return False
        if len(self.sides) == 1:
            return any(_fits(self.sides[0], stack) for stack in stacks)
        first, second = self.sides
        return any(_fits(first, one) and _fits(second, other) for one, other in (stacks, stacks[::-1]))

    def __str__(self) -> str:
        return f"{self.kind}:{' + '.join(' < '.join(map(str, side)) for side in self.sides)}"


def _fits(side: Side, stack: Sequence[Frame]) -> bool:
    frames = iter(stack)  # each place is looked for further out than the one before
    return all(any(place.fits(frame) for frame in frames) for place in side)


def rule_of(kind: str, stacks: Sequence[Sequence[Frame]]) -> str:
    """Return the rule for one report, '' if no place of it is known.

    It has the lines of both operations, and of the calls that led there up to where the two part: the same two
    operations count wherever the function is called from that makes both calls.
    """
    first, second = stacks
    sides = [side for side in (_side(first, second), _side(second, first)) if side]
    return str(Rule(kind, tuple(sides))) if sides else ""


def _side(stack: Sequence[Frame], other: Sequence[Frame]) -> Side:
    shared = 0
    while shared < min(len(stack), len(other)) and stack[-1 - shared] == other[-1 - shared]:
        shared += 1
    frames = stack[: len(stack) - shared] or stack
    ends = (frames[0], frames[-1]) if frames else ()
    shown = [frame for frame in frames if frame in ends or _sites.is_program(frame.file)]
    if len(shown) > _INNER + _OUTER:
        shown = shown[:_INNER] + shown[-_OUTER:]
    return tuple(Place(_pattern(frame.file), frame.line) for frame in shown)


def _pattern(file: str) -> str:
    """Return the PATH that stands for a file in a rule; a character that means something else there is any one."""
    path = _sites.installed(file) or _sites.shown(file)
    printed = "".join(character if character >= " " else "?" for character in glob.escape(path))
    return re.sub(r":|(?<= )[#<+]|^\s|\s$", "?", printed)


class Rules:
    """Rules in force, and how often each was used."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.used: dict[Rule, int] = dict.fromkeys(rules, 0)

    def suppress(self, kind: str, stacks: Sequence[Sequence[Frame]]) -> Rule | None:
        """Return the first rule that fits, which counts as a use of it, None if there is none."""
        for rule in self.used:
            if rule.fits(kind, stacks):
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
    sides = rest.split(" + ")
    if len(sides) > 2:
        raise wrong("there are more than two operations")
    places = [[_place(place.strip(), wrong) for place in side.split(" < ")] for side in sides]
    return Rule(kind, tuple(map(tuple, places)), where)


def _place(text: str, wrong: Callable[[str], InvalidValueError]) -> Place:
    path, colon, last = text.partition(":")
    if not path:
        raise wrong("there is no path")
    if colon and not last:
        raise wrong("nothing stands behind the last colon")
    if ":" in last:
        raise wrong("there are too many colons")
    if last.isdecimal() and last.isascii():
        if int(last) == 0:
            raise wrong("lines are counted from 1")
        return Place(path, int(last))
    if last[:1] in ("-", "+") or last[:1].isdigit():
        raise wrong(f"{last!r} is neither a line's number nor a function's name")
    return Place(path, 0, last)
