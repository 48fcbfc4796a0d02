"""paddle.base.core of 3.3: places, base streams and events, and the functions on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _core as core
from ..._core import _current
from ..._dialects._adapt import raising
from ..._dialects._not_built import not_built
from .._errors import ERRORS, EnforceNotMet, incompatible
from .._place import Place
from .._places import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    CustomPlace,
    IPUPlace,
    XPUPinnedPlace,
    XPUPlace,
    custom_types,
)
from ._events import CUDAEvent, CustomDeviceEvent, XPUEvent, custom_ordinal
from ._streams import CUDAStream, CustomDeviceStream, XPUStream

__all__ = [
    "CPUPlace",
    "CUDAEvent",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CUDAStream",
    "CustomDeviceEvent",
    "CustomDeviceStream",
    "CustomPlace",
    "EnforceNotMet",
    "IPUPlace",
    "Place",
    "XPUEvent",
    "XPUPinnedPlace",
    "XPUPlace",
    "XPUStream",
]


def is_compiled_with_cuda() -> bool:
    """`paddle.is_compiled_with_cuda` of 3.3: True, for a backend stands for the GPUs."""
    return True


def is_compiled_with_rocm() -> bool:
    """`paddle.is_compiled_with_rocm` of 3.3: False."""
    return False


def is_compiled_with_xpu() -> bool:
    """`paddle.is_compiled_with_xpu` of 3.3: False."""
    return False


def is_compiled_with_custom_device(device_type: str) -> bool:
    """`paddle.is_compiled_with_custom_device` of 3.3: True for the backend's own type."""
    if not isinstance(device_type, str):
        raise incompatible("is_compiled_with_custom_device", "(arg0: str) -> bool", device_type)
    return device_type in custom_types()


def get_all_custom_device_type() -> list[str]:
    """`paddle.device.get_all_custom_device_type` of 3.3."""
    return custom_types()


@raising(ERRORS)
def get_cuda_device_count() -> int:
    """`paddle.base.core.get_cuda_device_count` of 3.3."""
    return core.device_count()


@raising(ERRORS)
def get_custom_device_count(device_type: str) -> int:
    """`paddle.base.core.get_custom_device_count` of 3.3."""
    custom_ordinal(device_type, -1)
    return core.device_count()


def _gpu(device_id: int) -> int:
    """Return the checked ordinal of a GPU; -1 is the current one."""
    return _current.current_device() if device_id == -1 else CUDAPlace(device_id)._index


@raising(ERRORS)
def _get_current_stream(device_id: int) -> CUDAStream:
    """`paddle.base.core._get_current_stream` of 3.3."""
    return CUDAStream._current(_gpu(device_id))


def _set_current_stream(stream: Any) -> CUDAStream:
    """`paddle.base.core._set_current_stream` of 3.3: returns the stream that was current."""
    if not isinstance(stream, core.Stream):
        raise TypeError("stream type should be paddle.device.cuda.Stream")
    previous = CUDAStream._current(stream._ordinal)
    _current.set_stream(stream, False, process=True)
    return previous


@raising(ERRORS)
def _device_synchronize(device_id: int) -> None:
    """`paddle.base.core._device_synchronize` of 3.3."""
    core.synchronize(_gpu(device_id))


@raising(ERRORS)
def _get_current_raw_stream(device_id: int) -> int:
    """`paddle.base.core._get_current_raw_stream` of 3.3; it takes no -1."""
    return CUDAStream._current(CUDAPlace(device_id)._index).raw_stream


@raising(ERRORS)
def _get_legacy_default_stream(device_id: int) -> CUDAStream:
    """`paddle.base.core._get_legacy_default_stream` of 3.3."""
    return CUDAStream._default(_gpu(device_id))


@raising(ERRORS)
def _get_stream_from_external(ptr: int, device_id: int) -> CUDAStream:
    """`paddle.base.core._get_stream_from_external` of 3.3."""
    if ptr == 0:
        raise ValueError("(InvalidArgument) the pointer of an external stream must not be 0")
    return CUDAStream._wrap(core.Stream.from_handle(ptr, _gpu(device_id)))


@raising(ERRORS)
def _get_current_custom_device_stream(device_type: str, device_id: int = -1) -> CustomDeviceStream:
    """`paddle.base.core._get_current_custom_device_stream` of 3.3."""
    stream = CustomDeviceStream._current(custom_ordinal(device_type, device_id))
    stream._custom = device_type
    return stream


@raising(ERRORS)
def _set_current_custom_device_stream(device_type: str, device_id: int = -1, stream: Any = None) -> CustomDeviceStream:
    """`paddle.base.core._set_current_custom_device_stream` of 3.3: returns the new stream."""
    ordinal = custom_ordinal(device_type, device_id)
    if not isinstance(stream, core.Stream):
        raise TypeError("stream type should be CustomDeviceStream")
    if stream._ordinal != ordinal:
        raise ValueError(f"the stream lives on device {stream._ordinal}, not on {ordinal}")
    _current.set_stream(stream, False, process=True)
    return CustomDeviceStream._wrap(stream)


@raising(ERRORS)
def _synchronize_custom_device(device_type: str, device_id: int) -> None:
    """`paddle.base.core._synchronize_custom_device` of 3.3; -1 is the current device."""
    core.synchronize(custom_ordinal(device_type, device_id))


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
