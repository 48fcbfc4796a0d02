"""The positions of a tensor's elements in its memory: views by index, transposition and shape."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


class Layout(NamedTuple):
    """Elements of a shape, `offset` bytes into the memory, `strides` bytes apart."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @classmethod
    def whole(cls, shape: tuple[int, ...], itemsize: int) -> Layout:
        """Return the layout of contiguous elements at the start of the memory."""
        return cls(0, shape, contiguous_strides(shape, itemsize), itemsize)

    @property
    def contiguous(self) -> bool:
        """True if the elements follow one another in C order."""
        return 0 in self.shape or all(
            length == 1 or mine == theirs
            for length, mine, theirs in zip(
                self.shape,
                self.strides,
                contiguous_strides(self.shape, self.itemsize),
                strict=True,
            )
        )

    @property
    def span(self) -> tuple[int, int]:
        """First byte of the memory that an element lies in, and the one after the last."""
        if 0 in self.shape:
            return self.offset, self.offset
        ends = [s * (n - 1) for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.offset + sum(end for end in ends if end < 0)
        return low, self.offset + sum(end for end in ends if end > 0) + self.itemsize

    def view(self, flat: Any, start: int) -> Any:
        """Return the elements as a NumPy array; `flat` holds the memory from byte `start` on."""
        first = flat[(self.offset - start) // self.itemsize :] if flat.size else flat
        return np.lib.stride_tricks.as_strided(first, self.shape, self.strides)

    def at(self, key: Any) -> Layout:
        """Return the layout of the elements at a basic index; IndexError as NumPy raises it."""
        probe = self._probe()
        parts = _tuple(key)
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, ...)  # so that NumPy gives a view of one element, too
        return self._like(probe, probe[parts])

    def transposed(self, axes: tuple[int, ...] | None) -> Layout:
        """Return the layout with its dimensions in another order; None reverses them."""
        probe = self._probe()
        return self._like(probe, probe.transpose(axes))

    def broadcast(self, shape: tuple[int, ...]) -> Layout:
        """Return the layout that shows the elements again along new dimensions."""
        probe = self._probe()
        return self._like(probe, np.broadcast_to(probe, shape))

    def reshaped(self, shape: tuple[int, ...]) -> Layout:
        """Return contiguous elements in another shape."""
        return Layout(self.offset, shape, contiguous_strides(shape, self.itemsize), self.itemsize)

    def shape_at(self, key: Any) -> tuple[int, ...]:
        """Return the shape of what any index of NumPy's selects."""
        found = np.broadcast_to(np.zeros((), np.bool_), self.shape)[key]
        return tuple(np.shape(found))

    def _probe(self) -> Any:
        # Nothing reads through it: only addresses, shapes and strides are used.
        one = np.zeros((), np.dtype((np.void, self.itemsize)))
        return np.lib.stride_tricks.as_strided(one, self.shape, self.strides, writeable=False)

    def _like(self, probe: Any, part: Any) -> Layout:
        moved = _address(part) - _address(probe) if part.size else 0
        return Layout(self.offset + moved, part.shape, part.strides, self.itemsize)


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the bytes from one element to the next in each dimension, in C order."""
    return tuple(math.prod(shape[i + 1 :]) * itemsize for i in range(len(shape)))


def is_basic(key: Any) -> bool:
    """Return True for an index that selects a view: ints, slices, None and an Ellipsis."""
    return all(part is None or part is Ellipsis or isinstance(part, slice) or _is_int(part) for part in _tuple(key))


def _is_int(part: Any) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


def _tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
