"""paddle.device.Device: a device as a str."""

from __future__ import annotations

from typing import Any

from ..._core import _current
from .._names import device_to_place, enter, name_of
from .._place import Place
from .._places import is_custom

_TYPES = ("cpu", "gpu", "cuda", "xpu")


class Device(str):
    """`paddle.device.Device` of 3.3, also for custom types.

    As a context manager it holds for its thread and asyncio task only, and an
    ordinal that is in the text may not be given again as `index`.
    """

    _dev_type: str
    _index: int | None

    def __new__(cls, type: Any = None, index: int | None = None) -> Device:
        if isinstance(type, Place):
            type = name_of(type)
        if isinstance(type, str):
            kind, colon, number = type.lower().partition(":")
            if kind not in _TYPES and not is_custom(kind):
                raise ValueError(f"Unsupported device type: {kind}")
            if colon and index is not None:
                raise ValueError(f"index was given twice: {type!r} and {index!r}")
            where: int | None = int(number) if colon else int(index or 0)
        elif type is None and index is not None:
            raise ValueError("Device type must be specified if index is given")
        elif isinstance(type, int):
            kind, where = "cuda", int(type)
        else:
            raise TypeError(f"Unsupported type for Device: {type}")
        if kind == "cpu":
            where = None
        self = super().__new__(cls, kind if where is None else f"{kind}:{where}")
        self._dev_type, self._index = kind, where
        return self

    @property
    def type(self) -> str:
        """The type: 'cpu', 'gpu', 'cuda' or a custom type."""
        return self._dev_type

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The ordinal; None for the CPU."""
        return self._index

    def __enter__(self) -> Device:
        enter(device_to_place(str(self)))
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        _current.leave()

    def __dlpack_device__(self) -> tuple[int, int]:
        place: Place = device_to_place(str(self))
        return place.__dlpack_device__()

    def __reduce__(self) -> Any:
        return Device, (str(self),)
