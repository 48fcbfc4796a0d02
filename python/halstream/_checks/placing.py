"""The places of a suggested line: those at which each of its names means something."""

from __future__ import annotations

import ast
import builtins
import functools
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from .. import _sites
from . import source as _source
from . import variables
from .finding import Access, Finding, Frame, Note
from .source import Statement
from .syntax import body_of

__all__ = ["Calls", "behind", "means_the_same", "places", "several", "spelled", "stands"]

#: How the runtime calls accesses of the host that are seen by their pages: each was in front of its place, or there.
SEEN_BY_PAGE = "seen by its page, "
#: Functions inside a statement, which is not run with them, or whose names mean nothing around them.
_INSIDE = ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
#: Statements behind which the next one in their block runs.
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass, ast.Delete, ast.Assert, ast.Import)
#: Statements behind which none runs.
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


#: The modules whose names are in the lines for a dialect.
_MODULES = {"torch": "cuda", "cupy": "cuda", "cuda": "core", "paddle": "device", "mindspore": "hal"}


class Calls(NamedTuple):
    """A place of a line: a call, and those that led to it."""

    frames: tuple[Frame, ...]
    of: Access | Note  #: what the call did
    shown: Frame | None = None  #: the statement that the line goes behind, where that is not the call's own
    innermost: bool = True

    @property
    def frame(self) -> Frame:
        """The call in front of which, or behind which, the line runs."""
        return self.frames[0]

    @property
    def statement(self) -> Statement | None:
        """The statement of the call."""
        return _statement(self.of, self.frame)

    def same(self, name: str, origin: tuple[Frame, ...]) -> bool:
        """Return whether a name stands here for what it stands for at another call."""
        # The same call is another turn of a loop.
        return origin != self.frames and means_the_same(name, origin, self.frames)


def places(f: Finding) -> Iterator[tuple[str, Calls]]:
    """Yield where a line may order two accesses: ``before`` or ``after``, and the place. The latest comes first.

    It does wherever it runs between their calls: before the call of the second, in each
    function that leads to it and not to the first as well, and after the call of the first.
    """
    one, two = f.first.frames, f.second.frames
    shared = 0  # the outermost calls, which lead to both
    while shared < min(len(one), len(two)) - 1 and _same_statement(f, one[-1 - shared], two[-1 - shared]):
        shared += 1
    if not f.second.backward and not (f.second.host and f.second.operation.startswith(SEEN_BY_PAGE)):
        for i in range(len(two) - shared):
            if (place := _in_front(two[i:], f.second, i == 0)) is not None:
                yield place
    if not f.first.host and not f.first.backward:
        for number, calls in enumerate(behind(f.first)):
            if number == 0 and not (f.second.backward and _may_run_backward(f.first)):
                yield "after", calls


def _may_run_backward(access: Access) -> bool:
    """Return whether the program's call may run a backward pass: it is one of a library, and no module's."""
    for frame in _sites.outside(_sites.stack(access.site)):
        if frame == access.frames[0]:
            return False
        if "/torch/nn/modules/" not in frame.file.replace(os.sep, "/"):
            return True
    return True


def _same_statement(f: Finding, one: Frame, two: Frame) -> bool:
    """Return whether both accesses come from one statement, so that no line fits between its calls."""
    if one != two:
        return False
    first, second = _statement(f.first, one), _statement(f.second, two)
    return first is None or second is None or first.path[-1] is second.path[-1]


def _statement(one: Access | Note, frame: Frame) -> Statement | None:
    """Return the statement that a frame of a call is in: of several on a line the one that calls."""
    line, column = variables.position(one.site, frame)
    return _source.statement(frame.file, line, column) or _source.statement(frame.file, frame.line)


def _in_front(frames: tuple[Frame, ...], access: Access, innermost: bool) -> tuple[str, Calls] | None:
    """Return the place in front of a call, None where no statement is run there each time."""
    here = _statement(access, frames[0])
    if here is None or frames[0].function.endswith(_INSIDE):
        return None
    statement = here.path[-1]
    if variables.leaves(access.site, frames[0]):  # the call stands at the head of its block, and comes behind it
        last = body_of(statement)[-1:]
        if not isinstance(statement, (ast.With, ast.AsyncWith)) or not last or not isinstance(last[0], _SIMPLE):
            return None
        return "after", Calls(frames, access, frames[0]._replace(line=last[0].end_lineno or last[0].lineno), innermost)
    if isinstance(statement, ast.While) or variables.iterates(access.site, frames[0]) or here.is_elif:
        return None
    return "before", Calls(frames, access, None, innermost)


def behind(one: Access | Note) -> Iterator[Calls]:
    """Yield the places behind a call and behind those that lead to it: not at the head of a block."""
    for i, frame in enumerate(one.frames):
        here = _statement(one, frame)
        if here is None or frame.function.endswith(_INSIDE):
            continue
        if not body_of(here.path[-1]) and not isinstance(here.path[-1], _ENDS):
            yield Calls(one.frames[i:], one, None, i == 0)


def spelled(line: str, here: Statement | None, dialect: str) -> str:
    """Return a line with the names that the file gives to the package and to the module of a dialect."""
    if here is None:
        return line
    module = _MODULES.get(dialect, "")
    name = here.package(dialect, module) if module else ""
    if name and name != module:
        line = re.sub(rf"(?<![\w.]){module}\.", f"{name}.", line)
    for package in ("halstream", "torch"):
        line = re.sub(rf"(?<![\w.]){package}\.", f"{here.module(package)}.", line)
    return line


def stands(line: str, here: Statement | None, evaluated: bool = False) -> bool:
    """Return whether a line can go to a statement, with its names bound there; `evaluated` ones were seen there."""
    if here is None or (here.shares_lines and body_of(here.path[-1])):
        return False
    names, _ = _variables(line)
    if names is None:
        return False  # a placeholder
    if evaluated:
        return names.isdisjoint(here.chosen_inside)
    return all(here.knows(name) or hasattr(builtins, name) for name in names)


def several(place: Frame) -> bool:
    """Return whether several statements are on a line, so that none of them is known."""
    return _source.statement(place.file, place.line) is None and bool(_source.source_line(place.file, place.line))


def means_the_same(name: str, origin: tuple[Frame, ...], place: tuple[Frame, ...]) -> bool:
    """Return whether an expression stands at a place for what it stands for at its origin.

    Both are given with the calls that lead there. Its variables have to be those of one call of a
    function, or of the module, without another turn of a loop that binds them, and an element that
    a variable chooses is the same in the same line only. Without an origin it means the same everywhere.
    """
    if not origin or origin == place:
        return True
    there, here = (_source.statement(*frames[0][:2]) for frames in (origin, place))
    names, chosen = _variables(name)
    if names is None or chosen or there is None or here is None or origin[0].file != place[0].file:
        return False
    if "self" in names and _class(origin[0]) != _class(place[0]):
        return False
    for one in names - {"self"}:
        scope = there.scope(one)
        if scope != here.scope(one) or not there.keeps(one, place[0].line):
            return False
        if scope == there.function_scope == here.function_scope and origin[1:] != place[1:]:
            return False  # another call of the function
    return True


@functools.lru_cache(maxsize=4096)
def _variables(code: str) -> tuple[frozenset[str] | None, bool]:
    """Return the names in code, None if it is none, and whether a variable chooses an element in it."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except SyntaxError:
        return None, False
    chosen = any(isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant) for node in nodes)
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)), chosen


def _class(frame: Frame) -> tuple[str, str]:
    """Return the file and the class of the method that a frame is in."""
    return frame.file, frame.function.rpartition(".")[0]
