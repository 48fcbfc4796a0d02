"""Conditions: words in pinned memory that nodes of graphs look at."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .._core._base import Uncopied
from .._core._hostaccess import host_writes
from .._core._stream import Stream
from .._errors import InvalidValueError
from ._array import pinned_empty
from ._copies import fill

__all__ = ["Condition"]


class Condition(Uncopied):
    """A word of 4 bytes that `Graph.add_if`, `Graph.add_while` and `Graph.add_switch` look at.

    Anything may write it: `set` on a stream, which a graph can have as a node;
    `value`, also within a function on a stream; a copy to `array`; a native
    function or a kernel, at the address `ptr`. The graph keeps its memory.

    Parameters
    ----------
    initial : int or None
        What each launch begins with, from 0 to 2**32 - 1. With None a launch
        begins with what is there, at first 0.

    Raises
    ------
    InvalidValueError
        If `initial` is out of that range.

    Notes
    -----
    Contract G13. Source: CUDA driver API, cuGraphConditionalHandleCreate.

    Examples
    --------
    >>> import halstream as hs
    >>> s, left, out = hs.Stream(), hs.Condition(3), []
    >>> def step():
    ...     out.append(left.value)
    ...     left.value -= 1
    >>> with hs.capture(s) as body:
    ...     s.call(step)
    >>> graph = hs.Graph()
    >>> graph.add_while(left, body)
    0
    >>> graph.instantiate().launch(s)
    >>> s.synchronize()
    >>> out
    [3, 2, 1]
    """

    __slots__ = ("__weakref__", "_initial", "_ptr", "array")

    def __init__(self, initial: int | None = 0) -> None:
        self._initial = None if initial is None else _word(initial)
        #: The word as a NumPy array of one uint32, in pinned memory.
        self.array: Any = pinned_empty(1, np.uint32)
        self.array[0] = self._initial or 0
        self._ptr = int(self.array.__array_interface__["data"][0])

    @property
    def initial(self) -> int | None:
        """What each launch begins with; None for what is there.

        A graph that is a node of another one, a captured launch among them, has no launch of its own.
        """
        return self._initial

    @property
    def ptr(self) -> int:
        """Address of the word."""
        return self._ptr

    @property
    def value(self) -> int:
        """What the word is now.

        Setting it is an access of the host for the sanitizer, as by `host_access`, except in a
        function on a stream.
        """
        return int(self.array[0])

    @value.setter
    def value(self, value: int) -> None:
        number = _word(value)
        host_writes(self._ptr, 4)
        self.array[0] = number

    def __repr__(self) -> str:
        return f"<halstream.Condition {self.ptr:#x}, initial {self._initial}>"

    def set(self, value: int, stream: Stream) -> None:
        """Enqueue a fill of the word with a value.

        Raises
        ------
        InvalidValueError
            If the value is not from 0 to 2**32 - 1.
        """
        fill(stream, self.ptr, _word(value), 4, 1)


def _word(value: int) -> int:
    number = operator.index(value)
    if not 0 <= number < 1 << 32:
        raise InvalidValueError(f"a condition is a number from 0 to 2**32 - 1, not {number}")
    return number
