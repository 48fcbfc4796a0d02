"""Checks of arguments, with the exceptions and the words of the package."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

from ..._core import _current
from ..._core._device import Device, device_count
from ..._dialects._adapt import raising
from ..._dialects._not_built import NotBuiltError, not_built_function
from ._errors import ERRORS

__all__ = ["checked", "missing_method", "missing_property", "options_of", "ordinal_of", "size_of"]

T = TypeVar("T")

_count = raising(ERRORS)(device_count)


def checked(value: Any, kind: type[T], name: str) -> T:
    """Return an argument that must be of a class.

    Raises
    ------
    TypeError
        If it is not.
    """
    if not isinstance(value, kind):
        expected = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        raise TypeError(
            f"Argument {name!r} has incorrect type (expected {expected.removeprefix('halstream.')}, got "
            f"{type(value).__name__})"
        )
    return value


def ordinal_of(device: Any) -> int:
    """Return the number of a device that is given as a Device, by its number, or as None: the current one.

    Raises
    ------
    ValueError
        If there is no such device.
    TypeError
        If it is something else.
    """
    if device is None:
        return _current.current_device()
    if isinstance(device, Device):
        return device.ordinal
    if device < 0:
        raise ValueError(f"device_id must be >= 0, got {device}")
    total = _count()
    if device >= total:
        raise ValueError(f"device_id must be within [0, {total}), got {device}")
    return operator.index(device)


def options_of(kind: type[T], given: Any, what: str) -> T:
    """Return options that are given as an object, as a dict, or not at all.

    Raises
    ------
    TypeError
        If they are something else.
    """
    if given is None:
        return kind()
    if isinstance(given, dict):
        return kind(**given)
    if isinstance(given, kind):
        return given
    raise TypeError(
        f"The {what} options must be provided as an object of type {kind.__name__} or as a dict with valid {what} "
        f"options. The provided object is '{given}'."
    )


def size_of(size: Any) -> int:
    """Return a number of bytes.

    Raises
    ------
    TypeError
        If it is no integer.
    OverflowError
        If it is negative.
    """
    try:
        nbytes = operator.index(size)
    except TypeError:
        raise TypeError(f"Argument 'size' has incorrect type (expected int, got {type(size).__name__})") from None
    if nbytes < 0:
        raise OverflowError("can't convert negative value to size_t")
    return nbytes


def missing_method(path: str) -> Any:
    """Return what stands for a method of the package that is not built: it raises when it is called."""
    return not_built_function(path)


def missing_property(path: str) -> Any:
    """Return what stands for an attribute of the package that is not built; ``hasattr`` is False."""

    def get(self: object) -> Any:
        raise NotBuiltError(f"{path} is not built yet")

    get.__doc__ = f"{path}: not built yet."
    return property(get)
