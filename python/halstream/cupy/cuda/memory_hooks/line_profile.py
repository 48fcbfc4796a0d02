"""cupy.cuda.memory_hooks.line_profile (cupy 14.2.0)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar, TextIO

from ...._sites import ROOT
from .._errors import not_built as _not_built
from ..memory_hook import MemoryHook

__all__ = ["LineProfileHook"]

Line = tuple[str, int, str]


@dataclass
class _Node:
    """A line of a stack, and the bytes that were taken below it."""

    used: int = 0
    acquired: int = 0
    below: dict[Line, _Node] = field(default_factory=dict)

    def sizes(self) -> str:
        return f"({_readable(self.used)}, {_readable(self.acquired)})"


class LineProfileHook(MemoryHook):
    """cupy.cuda.memory_hooks.LineProfileHook (14.2.0): bytes by lines of the program.

    Differences: lines of this package are left out, so that the deepest line
    is the program's own; `max_depth` counts the root, as there.
    """

    name: ClassVar[str] = "LineProfileHook"

    def __init__(self, max_depth: int = 0) -> None:
        self._root = _Node()
        self._max_depth = max_depth

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Count what is taken of a pool."""
        self._count(used=kwargs["mem_size"])

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Count what a pool takes of the device."""
        self._count(acquired=kwargs["mem_size"])

    def _count(self, used: int = 0, acquired: int = 0) -> None:
        node = self._root
        lines = _stack(sys._getframe(2))
        if self._max_depth > 0:
            lines = lines[: self._max_depth - 1]
        node.used, node.acquired = node.used + used, node.acquired + acquired
        for line in lines:
            node = node.below.setdefault(line, _Node())
            node.used, node.acquired = node.used + used, node.acquired + acquired

    def print_report(self, file: TextIO = sys.stdout) -> None:
        """Write the tree of lines: each with the bytes used and the bytes acquired."""
        file.write(f"_root {self._root.sizes()}\n")
        _write(self._root, 1, file)
        file.flush()


def _stack(frame: FrameType | None) -> list[Line]:
    """Return the lines of the program that led here, the outermost first."""
    found = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(ROOT):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found[::-1]


def _write(node: _Node, depth: int, file: TextIO) -> None:
    for (path, number, name), below in node.below.items():
        file.write(f"{'  ' * depth}{path}:{number}:{name} {below.sizes()}\n")
        _write(below, depth + 1, file)


def _readable(nbytes: float) -> str:
    for unit in ("", "K", "M", "G", "T", "P", "E"):
        if nbytes < 1024:
            return f"{nbytes:.2f}{unit}B"
        nbytes /= 1024
    return f"{nbytes:.2f}ZB"


__getattr__: Callable[[str], Any] = _not_built(__name__)
