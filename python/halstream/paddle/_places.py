"""Places of the paddle dialect: where memory and streams are, as values."""

from __future__ import annotations

import operator
from typing import Any

import halstream

from .. import _core as core
from ._errors import incompatible
from ._place import Place

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CustomPlace",
    "IPUPlace",
    "Place",
    "XPUPinnedPlace",
    "XPUPlace",
]

_FORM = "paddle.base.libpaddle."
_WRONG_PLACE = "(InvalidArgument) use wrong place, Please check."


def custom_types() -> list[str]:
    """Return the registered custom types: custom_cpu is the host backend, npu the Ascend one."""
    return {"host": ["custom_cpu"], "ascend": ["npu"]}.get(halstream.backend(), [])


def is_custom(device_type: str) -> bool:
    """True for the name of a custom type that can be used here, registered or not.

    ``npu`` is taken on every backend, so that programs for Ascend run unchanged.
    """
    return device_type == "npu" or device_type in custom_types()


def _checked(index: object, form: str, *given: object) -> int:
    try:
        value = operator.index(index)  # type: ignore[arg-type]
    except TypeError:
        raise incompatible("__init__", _FORM + form, *given) from None
    if not 0 <= value < core.device_count():
        raise ValueError(_WRONG_PLACE)
    return value


class CPUPlace(Place):
    """paddle.CPUPlace of 3.3: no streams."""

    _kind = "cpu"


class CUDAPinnedPlace(Place):
    """paddle.CUDAPinnedPlace of 3.3."""

    _kind = "gpu_pinned"


class CUDAPlace(Place):
    """paddle.CUDAPlace of 3.3: a device of the backend in use, whatever that is."""

    _kind = "gpu"

    def __init__(self, device_id: int, /) -> None:
        self._index = _checked(device_id, "CUDAPlace(arg0: int)", device_id)

    def get_device_id(self) -> int:
        """Return the ordinal."""
        return self._index


class CustomPlace(Place):
    """paddle.CustomPlace of 3.3; custom_cpu needs the host backend, npu takes any."""

    _kind = "custom"

    def __init__(self, device_type: str, device_id: int, /) -> None:
        form = "CustomPlace(arg0: str, arg1: int)"
        if not isinstance(device_type, str):
            raise incompatible("__init__", _FORM + form, device_type, device_id)
        if device_type == "custom_cpu" and halstream.backend() != "host":
            raise ValueError(
                f"custom_cpu is the host backend, and this process uses {halstream.backend()}; "
                "choose it by HALSTREAM_BACKEND=host or halstream.use_backend('host')"
            )
        if not is_custom(device_type):
            raise ValueError(_WRONG_PLACE)
        self._index = _checked(device_id, form, device_type, device_id)
        self._custom = device_type

    @classmethod
    def _named(cls, device_type: str, index: int) -> Any:
        place = cls._of(index)
        place._custom = device_type
        return place

    def get_device_id(self) -> int:
        """Return the ordinal."""
        return self._index

    def get_device_type(self) -> str:
        """Return the type's name."""
        return self._custom


class XPUPlace(Place):
    """paddle.XPUPlace of 3.3: not compiled with XPU, so it raises ValueError."""

    _kind = "xpu"

    def __init__(self, device_id: int, /) -> None:
        raise ValueError(_WRONG_PLACE)


class IPUPlace(Place):
    """paddle.IPUPlace of 3.3: not compiled with IPU, so it raises ValueError."""

    _kind = "ipu"

    def __init__(self) -> None:
        raise ValueError(_WRONG_PLACE)


class XPUPinnedPlace(Place):
    """paddle.XPUPinnedPlace of 3.3: not compiled with XPU, so it raises RuntimeError."""

    _kind = "xpu_pinned"

    def __init__(self) -> None:
        raise RuntimeError("(PermissionDenied) XPUPinnedPlace needs a build with XPU support.")
