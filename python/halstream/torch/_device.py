"""torch.device, and how every function of the dialect reads its device argument."""

from __future__ import annotations

import operator
import re
from typing import Any

from .._core import _current, device_count
from .._errors import HalError
from ._errors import ERRORS, again, error

_TYPES = (
    "cpu",
    "cuda",
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "privateuseone",
)
_FORM = re.compile(r"([A-Za-z_]+)(?::(0|[1-9][0-9]*))?")

CPU = 0
CUDA = 1


class device:
    """torch.device (2.15): a type and an index; not a context manager here."""

    __module__ = "halstream.torch"
    __slots__ = ("_index", "_type")

    def __init__(self, type: Any = None, index: int | None = None, *, device: Any = None) -> None:
        given = type if device is None else device
        if isinstance(given, str):
            self._type, self._index = _parse(given, index)
        elif is_device(given) and index is None:
            self._type, self._index = given.type, given.index
        elif isinstance(given, int) and not isinstance(given, bool) and index is None:
            if given < 0:
                raise RuntimeError("Device index must not be negative")
            self._type, self._index = "cuda", given
        else:
            raise TypeError(
                "device() received an invalid combination of arguments: expected a string, "
                f"an int or a torch.device, not {given!r}"
            )

    @property
    def type(self) -> str:
        """``'cuda'`` for every backend of the runtime, or another of torch's names."""
        return self._type

    @property
    def index(self) -> int | None:
        """The device's number; None where the text named only the type."""
        return self._index

    def __eq__(self, other: object) -> bool:
        if is_device(other):
            return (self._type, self._index) == (
                getattr(other, "type", None),
                getattr(other, "index", None),
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._type, self._index))

    def __str__(self) -> str:
        return self._type if self._index is None else f"{self._type}:{self._index}"

    def __repr__(self) -> str:
        index = "" if self._index is None else f", index={self._index}"
        return f"device(type={self._type!r}{index})"

    def __reduce__(self) -> Any:
        return (device, (self._type,) if self._index is None else (self._type, self._index))


def is_device(value: Any) -> bool:
    """True for this dialect's device and for torch's own."""
    return hasattr(value, "type") and hasattr(value, "index") and not isinstance(value, type)


def _parse(text: str, index: int | None) -> tuple[str, int | None]:
    match = _FORM.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    name, number = match.groups()
    if name not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}")
    if index is None:
        return name, None if number is None else int(number)
    if number is not None:
        raise RuntimeError("type (string) must not include an index because index was passed explicitly: " + text)
    value = operator.index(index)
    if value < 0:
        raise RuntimeError("Device index must not be negative")
    return name, value


def device_index(where: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number that a device argument means, without a check that the device exists.

    An int passes unchecked. With `optional` everything that names no index is
    the current device.
    """
    if isinstance(where, int):
        return where
    if isinstance(where, str):
        where = device(where)
    if is_device(where):
        if where.type == "cpu" and allow_cpu:
            return -1
        if where.type != "cuda":
            expected = "cuda or cpu" if allow_cpu else "cuda"
            raise ValueError(f"Expected a {expected} device, but got: {where}")
        if where.index is not None:
            return int(where.index)
    elif isinstance(getattr(where, "idx", None), int):
        return int(where.idx)  # a torch.cuda.device context
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{where}")
    return _current.current_device()


def count() -> int:
    """Return the number of devices; raise where there is no backend."""
    try:
        return device_count()
    except HalError as exc:
        raise again(exc, ERRORS) from None


def existing(index: int) -> int:
    """Return an ordinal for an index: a negative one is the current device.

    Raises
    ------
    AcceleratorError
        If there is no such device; a RuntimeError.
    """
    if index < 0:
        return _current.current_device()
    total = count()
    if index >= total:
        raise error(
            "invalid_device",
            f"CUDA error: invalid device ordinal (device {index} of {total})",
            code=101,
        )
    return index


def in_range(index: int) -> int:
    """Like `existing`, for the getters of streams, which name the range."""
    if index == -1:
        return _current.current_device()
    total = count()
    if not 0 <= index < total:
        raise error(
            "invalid_device",
            f"Device index value {index} is out of index range [0, {total})",
        )
    return index
