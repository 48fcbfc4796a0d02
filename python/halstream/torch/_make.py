"""Construction of the dialect's streams, and the texts of their errors."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core as core
from .._errors import WrongDeviceError
from . import _stream_rings as _pool
from ._device import device, existing, is_device
from ._errors import dialect_errors, error

if TYPE_CHECKING:
    from ._streams import Stream

S = TypeVar("S", bound="Stream")

_PARTS = ("stream_id", "device_index", "device_type")


@dialect_errors
def pooled(cls: type[S], index: int, priority: int) -> S:
    """Return the next stream of a pool in a class; a negative index is the current device."""
    where = existing(index)
    owner = _pool.take(where, priority)
    new = object.__new__(cls)
    new._attach(owner.ident, where, owner)
    return new


@dialect_errors
def foreign(cls: type[S], handle: int, index: int) -> S:
    """Wrap the handle of a live stream; the device must be the stream's.

    Raises
    ------
    AcceleratorError
        If no live stream has this handle, or it lives on another device.
    """
    where = existing(index)
    new = cls.from_handle(handle, where)
    if new._ordinal != where:
        raise error(
            "wrong_device",
            f"the stream with handle {handle:#x} lives on device {new._ordinal}, not {where}",
        )
    return new


def three_parts(first: Any, parts: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, int, int]:
    """Read (stream_id, device_index, device_type), by position, by name, or both."""
    for name in named:
        if name not in _PARTS:
            raise TypeError(f"Stream() got an unexpected keyword argument {name!r}")
    values = (first, *parts) if parts or first is not None else ()
    given = dict(zip(_PARTS, values, strict=False))
    if len(values) > 3 or given.keys() & named.keys() or {*given, *named} != set(_PARTS):
        raise TypeError(
            "Stream() received an invalid combination of arguments: expected (device, *, "
            "priority) or (stream_id, device_index, device_type, *, priority)"
        )
    given.update(named)
    number, index, kind = (operator.index(given[name]) for name in _PARTS)
    return number, index, kind


def device_argument(caller: str, given: Any) -> device:
    """Read the device argument of torch.Stream and torch.Event."""
    if given is None:
        return device("cuda")
    if isinstance(given, bool) or not (isinstance(given, (int, str)) or is_device(given)):
        raise TypeError(f"{caller}(): argument 'device' (position 1) must be torch.device, not {type(given).__name__}")
    where = device(given)
    if where.type not in ("cpu", "cuda"):
        raise RuntimeError(f"{where.type} is not a device of this runtime")
    return where


def mismatch(failed: BaseException, words: str, event: object, stream: object) -> BaseException:
    """Return torch's error for an event recorded on another device's stream."""
    if not (isinstance(failed, WrongDeviceError) and isinstance(event, core.Event) and isinstance(stream, core.Stream)):
        return failed
    text = words.format(event._ordinal, stream._ordinal)
    return type(failed)(text, code=failed.code, operation=failed.operation)
