"""The places of a suggested line: those at which each of its names means something."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from . import source as _source
from .finding import Finding, Frame

__all__ = ["places", "spelled", "stands"]


def places(f: Finding) -> Iterator[tuple[str, Frame]]:
    """Yield where a line may order two accesses: ``before`` or ``after``, and the place; the latest first.

    It does wherever it runs between their calls: before the call of the second, in each
    function that leads to it and not to the first as well, and after the call of the first.
    """
    one, two = f.first.frames, f.second.frames
    shared = 0  # the outermost calls, which lead to both
    while shared < min(len(one), len(two)) - 1 and one[-1 - shared] == two[-1 - shared]:
        shared += 1
    yield from (("before", frame) for frame in two[: len(two) - shared])
    if not f.first.host:
        yield from (("after", frame) for frame in f.first.frames[:1])


def spelled(line: str, place: Frame) -> str:
    """Return a line with the name that the file gives to the package."""
    here = _source.statement(place.file, place.line)
    name = here.module("halstream") if here is not None else "halstream"
    return line if name == "halstream" else line.replace("halstream.", f"{name}.")


def stands(line: str, place: Frame, own: Sequence[Frame]) -> bool:
    """Return whether each name of a line is bound at a place.

    `self` means the same only in methods of the classes in whose methods `own` are.
    """
    here = _source.statement(place.file, place.line)
    if here is None or not here.extent[2]:
        return False
    try:
        tree = ast.parse(line)
    except SyntaxError:
        return False  # a placeholder
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if "self" in names and any(_class(frame) != _class(place) for frame in own):
        return False
    return all(here.knows(name) or hasattr(builtins, name) for name in names)


def _class(frame: Frame) -> tuple[str, str]:
    """Return the file and the class of the method that a frame is in."""
    return frame.file, frame.function.rpartition(".")[0]
