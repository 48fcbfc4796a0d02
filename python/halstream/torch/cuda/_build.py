"""Parsing of the arguments of `streams`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

from ... import _core as core
from ..._core import _interop
from .._device import CUDA, in_range
from .._errors import dialect_errors
from .._make import foreign, pooled

if TYPE_CHECKING:
    from .streams import Stream

S = TypeVar("S", bound="Stream")

_HIDDEN = frozenset({"stream_id", "device_index", "device_type", "stream_ptr"})
# torch reads a handle as an unsigned 64-bit number, without a check.
_UNSIGNED = 2**64 - 1


def wrap(cls: type[S], index: int, priority: int, kwargs: dict[str, Any]) -> S:
    """Build a stream from the arguments that torch does not document.

    Three parts, of which any is not zero, name a stream of torch; otherwise
    `stream_ptr` is the handle of a foreign one; without either the next stream of the pool.
    """
    for name in kwargs:
        if name not in _HIDDEN:
            raise TypeError(f"Stream.__new__() got an unexpected keyword argument {name!r}")
    number, where, kind = (operator.index(kwargs.get(name, 0)) for name in ("stream_id", "device_index", "device_type"))
    if number or where or kind:
        if kind != CUDA:
            raise RuntimeError(f"a torch.cuda.Stream has device type {CUDA}, not {kind}")
        return foreign(cls, number, in_range(where))
    if "stream_ptr" not in kwargs:
        return pooled(cls, index, priority)
    handle = operator.index(kwargs["stream_ptr"]) & _UNSIGNED
    if priority:
        raise RuntimeError("Priority was explicitly set for an external stream")
    return foreign(cls, handle, index)


@dialect_errors
def shared(stream: Stream) -> tuple[int, int]:
    """Return what `__cuda_stream__` gives."""
    return _interop.cuda_stream(stream)


@dialect_errors
def priority_range() -> tuple[int, int]:
    """Return the least and the greatest priority of the current device."""
    return core.Device().priority_range


def flag(value: Any) -> int:
    """Read a flag of an event as torch does: a small number without a sign."""
    number = operator.index(value)
    if not 0 <= number <= 255:
        way = "less than minimum" if number < 0 else "greater than maximum"
        raise OverflowError(f"unsigned byte integer is {way}")
    return number
