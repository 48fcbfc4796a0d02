"""Place: the base class of the paddle dialect's places."""

from __future__ import annotations

from typing import Any

from ._errors import incompatible

_TYPES = {
    "undefined": 0,
    "cpu": 1,
    "gpu": 2,
    "gpu_pinned": 3,
    "xpu": 4,
    "xpu_pinned": 5,
    "ipu": 6,
    "custom": 7,
}
# Device types of DLPack.
_DLPACK = {"gpu": 2, "gpu_pinned": 3, "custom": 12}


class Place:
    """paddle.base.core.Place of 3.3; it can be copied and pickled, as from 3.4 on."""

    _kind: str = "undefined"
    _custom: str = ""
    _index: int = 0

    @classmethod
    def _of(cls, index: int) -> Any:
        """Return the place of an ordinal that was checked before."""
        place = cls.__new__(cls)
        place._index = index
        return place

    def is_cpu_place(self) -> bool:
        return self._kind == "cpu"

    def is_gpu_place(self) -> bool:
        return self._kind == "gpu"

    def is_xpu_place(self) -> bool:
        return self._kind == "xpu"

    def is_ipu_place(self) -> bool:
        return self._kind == "ipu"

    def is_cuda_pinned_place(self) -> bool:
        return self._kind == "gpu_pinned"

    def is_xpu_pinned_place(self) -> bool:
        return self._kind == "xpu_pinned"

    def is_custom_place(self) -> bool:
        return self._kind == "custom"

    def gpu_device_id(self) -> int:
        return self._index

    def xpu_device_id(self) -> int:
        return self._index

    def ipu_device_id(self) -> int:
        return self._index

    def custom_device_id(self) -> int:
        return self._index

    def custom_device_type(self) -> str:
        return self._custom

    def set_place(self, place: Place) -> None:
        if not isinstance(place, Place):
            raise incompatible("set_place", "(self: Place, arg0: Place) -> None", self, place)
        self._kind, self._custom, self._index = place._kind, place._custom, place._index

    def _type(self) -> int:
        return _TYPES[self._kind]

    def _equals(self, place: Place) -> bool:
        if not isinstance(place, Place):
            raise incompatible("_equals", "(self: Place, arg0: Place) -> bool", self, place)
        return self == place

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK.get(self._kind, 1), self._index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Place):
            return False
        return (self._kind, self._custom, self._index) == (
            other._kind,
            other._custom,
            other._index,
        )

    def __hash__(self) -> int:
        return hash((Place, self._kind, self._custom, self._index))

    def __repr__(self) -> str:
        if self._kind == "cpu" or self._kind.endswith("_pinned"):
            return f"Place({self._kind})"
        return f"Place({self._custom or self._kind}:{self._index})"

    __str__ = __repr__

    def __reduce__(self) -> Any:
        return _restore, (type(self), self._kind, self._custom, self._index)


def _restore(cls: type[Place], kind: str, custom: str, index: int) -> Place:
    place = cls.__new__(cls)
    place._kind, place._custom, place._index = kind, custom, index
    return place
