"""The places of a suggested line: those at which each of its names means something."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator, Sequence

from . import source as _source
from .finding import Finding, Frame

__all__ = ["means_the_same", "places", "places_and_calls", "spelled", "stands"]


#: The modules whose names are in the lines for a dialect.
_MODULES = {"torch": "cuda", "cupy": "cuda", "paddle": "device", "mindspore": "hal"}


def places(f: Finding) -> Iterator[tuple[str, Frame]]:
    """Yield `places_and_calls` without the calls."""
    return ((where, calls[0]) for where, calls in places_and_calls(f))


def places_and_calls(f: Finding) -> Iterator[tuple[str, tuple[Frame, ...]]]:
    """Yield where a line may order two accesses: ``before`` or ``after``, and the place with the calls that lead to it.

    The latest comes first.

    It does wherever it runs between their calls: before the call of the second, in each
    function that leads to it and not to the first as well, and after the call of the first.
    """
    one, two = f.first.frames, f.second.frames
    shared = 0  # the outermost calls, which lead to both
    while shared < min(len(one), len(two)) - 1 and one[-1 - shared] == two[-1 - shared]:
        shared += 1
    yield from (("before", two[i:]) for i in range(len(two) - shared))
    if not f.first.host and one:
        yield "after", one


def spelled(line: str, place: Frame, dialect: str) -> str:
    """Return a line with the names that the file gives to the package and to the module of a dialect."""
    here = _source.statement(place.file, place.line)
    if here is None:
        return line
    module = _MODULES.get(dialect, "")
    name = here.package(dialect, module) if module else ""
    if name and name != module:
        line = re.sub(rf"(?<![\w.]){module}\.", f"{name}.", line)
    package = here.module("halstream")
    return line if package == "halstream" else line.replace("halstream.", f"{package}.")


def stands(line: str, place: Frame, own: Sequence[Frame]) -> bool:
    """Return whether each name of a line is bound at a place.

    `self` means the same only in methods of the classes in whose methods `own` are.
    """
    here = _source.statement(place.file, place.line)
    if here is None or not here.extent[2]:
        return False
    names, _ = _variables(line)
    if names is None:
        return False  # a placeholder
    if "self" in names and any(_class(frame) != _class(place) for frame in own):
        return False
    return all(here.knows(name) or hasattr(builtins, name) for name in names)


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
