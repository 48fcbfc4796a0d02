"""Restores the contents of arrays from fixtures of wider scope before each further run of a test.

A module's fixture is set up once. Without this an array that the first, correct
run has filled would show later runs the right values whatever their schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._errors import HalError
from .._memory._array import Array

__all__ = ["Contents"]

#: Bytes that are kept of one test's fixtures; larger arrays are not put back.
_MOST = 64 << 20
_DEPTH = 4


class Contents:
    """Copies of the arrays in values of fixtures."""

    def __init__(self) -> None:
        self._kept: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self._nbytes = 0
        self.left_out: list[str] = []  #: names of fixtures with more than is kept

    def keep(self, name: str, value: object) -> None:
        """Copy what the arrays in a fixture's value hold now."""
        for view in _views(value, _DEPTH, set()):
            if not view.flags.writeable or view.dtype.hasobject:
                continue
            if self._nbytes + view.nbytes > _MOST:
                self.left_out.append(name)
                return
            self._nbytes += view.nbytes
            self._kept.append((view, view.copy()))

    def restore(self) -> None:
        """Put back what was kept."""
        for view, copy in self._kept:
            view[...] = copy


def _views(value: object, depth: int, seen: set[int]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in a value, in its containers and in the attributes of its objects."""
    if depth == 0 or id(value) in seen or isinstance(value, (str, bytes, int, float, type)):
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Array):
        try:
            yield value.numpy()
        except HalError:
            return  # closed, or of a device whose memory the host does not see
    else:
        parts: list[object] = []
        if isinstance(value, Mapping):
            parts += value.values()
        elif isinstance(value, (list, tuple, set)):
            parts += value
        else:
            parts += getattr(value, "__dict__", {}).values()
        for part in parts:
            yield from _views(part, depth - 1, seen)
