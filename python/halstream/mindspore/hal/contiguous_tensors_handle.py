"""`mindspore.hal.contiguous_tensors_handle` of 2.10: several tensors in one block of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core as core
from ..._core import _current
from ..._dialects._compute import compute, new
from ..._dialects._not_built import not_built
from ..common.tensor import Tensor

__all__ = ["ContiguousTensorsHandle", "combine_tensor_list_contiguous"]

_ALIGNMENT = 512


class ContiguousTensorsHandle:
    """`mindspore.hal.contiguous_tensors_handle.ContiguousTensorsHandle` of 2.10.

    Differences: all tensors must have one element type, and they keep their
    own memory besides.
    """

    def __init__(self, tensor_list: Any, enable_mem_align: bool = True) -> None:
        if not isinstance(tensor_list, (list, tuple)) or not all(isinstance(x, Tensor) for x in tensor_list):
            raise TypeError(
                "For 'ContiguousTensorsHandle', the 'tensor_list' must be a list or a tuple of "
                f"Tensors, but got {type(tensor_list)}."
            )
        if not isinstance(enable_mem_align, bool):
            raise TypeError(
                "For 'ContiguousTensorsHandle', the type of 'enable_mem_align' must be 'bool', "
                f"but got '{type(enable_mem_align).__name__}'."
            )
        if len({x._dtype for x in tensor_list}) != 1:
            raise TypeError("For 'ContiguousTensorsHandle', all tensors must have one dtype.")
        self._dtype = tensor_list[0]._dtype
        step = _ALIGNMENT // self._dtype.itemsize if enable_mem_align else 1
        self._sizes = [x.size for x in tensor_list]
        self._starts = [0]
        for size in self._sizes:
            self._starts.append(self._starts[-1] + -(-size // step) * step)
        self._stream: core.Stream = core.Stream._current(_current.current_device())
        self._block = new((self._starts[-1],), self._dtype, self._stream, tracked=True)
        compute(self._stream, _lay, self._block, self._starts, *(x._block() for x in tensor_list))

    def _part(self, start: int, stop: int) -> Tensor:
        return Tensor._view(self._block[start:stop], self._stream)

    def __getitem__(self, item: int | slice) -> Tensor:
        """Return one element, or a flat piece, of the whole block with its padding."""
        size = self._block.size
        if isinstance(item, slice):
            start = 0 if item.start is None else item.start
            stop = size if item.stop is None else item.stop
            return self._part(*_checked("slice", start, stop, size))
        return self._part(*_checked("index", item, item + 1 if _is_int(item) else item, size))

    def slice_by_tensor_index(self, start: Any = None, end: Any = None) -> Tensor:
        """Return the tensors from `start` up to `end`, flat, with the padding between them."""
        count = len(self._sizes)
        if start is None and end is None:
            start, end = 0, count
        start = 0 if start is None else start
        end = start + 1 if end is None and _is_int(start) else end
        start, end = _checked("slice_by_tensor_index", start, end, count)
        return self._part(self._starts[start], self._starts[end - 1] + self._sizes[end - 1])

    def __str__(self) -> str:
        lines = [f"Handle total size: {self._block.nbytes}"]
        for number, (start, size) in enumerate(zip(self._starts, self._sizes, strict=False)):
            lines.append(f"Tensor[{number}]: {self._part(start, start + size)}")
        return "\n".join(lines)


def combine_tensor_list_contiguous(tensor_list: Any, enable_mem_align: bool = True) -> ContiguousTensorsHandle:
    """`mindspore.hal.contiguous_tensors_handle.combine_tensor_list_contiguous` of 2.10."""
    return ContiguousTensorsHandle(tensor_list, enable_mem_align)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked(what: str, start: Any, stop: Any, size: int) -> tuple[int, int]:
    for value in (start, stop):
        if not _is_int(value):
            raise TypeError(f"For '{what}', the bounds must be int, but got {type(value)}.")
    if start < 0 or stop > size or start >= stop:
        raise ValueError(f"For '{what}', the bounds {start} and {stop} must be a piece of 0 to {size}.")
    return start, stop


def _lay(starts: list[int], *tensors: Any, out: Any) -> None:
    out[...] = 0
    for start, value in zip(starts, tensors, strict=False):
        np.copyto(out[start : start + value.size], value.reshape(-1))


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
