"""paddle.cuda of 3.3: the names of paddle.device, with ints and 'cuda:N' for devices.

Names for graphs are not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _memory
from .._core import _interop
from .._dialects._adapt import raising
from .._dialects._not_built import not_built
from ._errors import ERRORS
from ._names import convert_to_place, device_to_paddle, device_to_place
from ._place import Place
from .device import (
    Event,
    Stream,
    StreamContext,
    current_device,
    device,
    device_count,
    empty_cache,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_stream_from_external,
    is_available,
    is_current_stream_capturing,
    reset_peak_memory_stats,
    set_stream,
    stream,
)
from .device import cuda as _cuda
from .device import current_stream as _current_stream
from .device import set_device as _set_device
from .device import synchronize as _synchronize
from .device._random import (
    get_rng_state,
    ipc_collect,
    is_bf16_supported,
    manual_seed,
    manual_seed_all,
    nvtx,
    set_rng_state,
)

__all__ = [
    "CudaError",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "check_error",
    "current_device",
    "current_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_stream_from_external",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_summary",
    "nvtx",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "set_stream",
    "stream",
    "synchronize",
]

_TEXTS = {
    1: "invalid argument",
    2: "out of memory",
    3: "initialization error",
    35: "CUDA driver version is insufficient for CUDA runtime version",
    100: "no CUDA-capable device is detected",
    101: "invalid device ordinal",
    400: "invalid resource handle",
    600: "device not ready",
    700: "an illegal memory access was encountered",
    719: "unspecified launch failure",
    801: "operation not supported",
}


class CudaError(RuntimeError):
    """`paddle.cuda.CudaError` of 3.3."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_TEXTS.get(code, 'unrecognized error code')} ({code})")
        self._code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._code,)


class OutOfMemoryError(RuntimeError):
    """`paddle.cuda.OutOfMemoryError` of 3.3; no subclass of `CudaError`."""


def check_error(res: int) -> None:
    """`paddle.cuda.check_error` of 3.3: raise for a code of the CUDA runtime that is not 0."""
    if res == 2:
        raise OutOfMemoryError(f"{_TEXTS[2]} (2)")
    if res != 0:
        raise CudaError(res)


def current_stream(device: Any = None) -> Stream:
    """`paddle.cuda.current_stream` of 3.3."""
    return _current_stream(convert_to_place(device_to_paddle(device)))


def synchronize(device: Any = None) -> None:
    """`paddle.cuda.synchronize` of 3.3."""
    _synchronize(convert_to_place(device_to_paddle(device)))


def set_device(device: Any) -> None:
    """`paddle.cuda.set_device` of 3.3; an int on the CPU means a GPU, as from 3.4 on."""
    if not isinstance(device, (int, str, Place)):
        raise ValueError(
            f"Unsupported device type: {type(device)}. Expected int, str, CUDAPlace, XPUPlace, or CustomPlace."
        )
    if isinstance(device, int) and device >= 0 and device_to_paddle() == "cpu":
        device = f"gpu:{device}"
    _set_device(device)


def is_initialized() -> bool:
    """`paddle.cuda.is_initialized` of 3.3: True once the runtime was used."""
    return _interop.initialized()


@raising(ERRORS)
def mem_get_info(device: Any = None) -> tuple[int, int]:
    """`paddle.cuda.mem_get_info` of 3.3: free and total bytes."""
    place = device_to_place(device)
    if not (isinstance(place, Place) and place.is_gpu_place()):
        raise ValueError(f"Expected a cuda device, but got: {device if device else place}")
    return _memory.memory_info(place._index)


def max_memory_allocated(device: Any = None) -> int:
    """`paddle.cuda.max_memory_allocated` of 3.3."""
    return _cuda.max_memory_allocated(device_to_paddle(device))


def max_memory_reserved(device: Any = None) -> int:
    """`paddle.cuda.max_memory_reserved` of 3.3."""
    return _cuda.max_memory_reserved(device_to_paddle(device))


def memory_allocated(device: Any = None) -> int:
    """`paddle.cuda.memory_allocated` of 3.3."""
    return _cuda.memory_allocated(device_to_paddle(device))


def memory_reserved(device: Any = None) -> int:
    """`paddle.cuda.memory_reserved` of 3.3."""
    return _cuda.memory_reserved(device_to_paddle(device))


def reset_max_memory_allocated(device: Any = None) -> None:
    """`paddle.cuda.reset_max_memory_allocated` of 3.3."""
    _cuda.reset_max_memory_allocated(device_to_paddle(device))


def reset_max_memory_reserved(device: Any = None) -> None:
    """`paddle.cuda.reset_max_memory_reserved` of 3.3."""
    _cuda.reset_max_memory_reserved(device_to_paddle(device))


def memory_summary(device: Any = None) -> str:
    """`paddle.cuda.memory_summary` of 3.3."""
    return _cuda.memory_summary(device_to_paddle(device))


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
