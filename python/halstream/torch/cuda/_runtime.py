"""Runtime names of torch.cuda (2.15): cudart and its errors."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ... import _memory
from ..._core import _current, _interop
from ..._errors import HalError, InvalidHandleError
from .memory import mem_get_info

_TEXTS = {
    0: "no error",
    1: "invalid argument",
    2: "out of memory",
    3: "initialization error",
    100: "no CUDA-capable device is detected",
    101: "invalid device ordinal",
    400: "invalid resource handle",
    600: "device not ready",
    801: "operation not supported",
    999: "unknown error",
}


class cudaError(enum.IntEnum):
    """torch.cuda.cudart().cudaError (2.15): the one that programs compare with."""

    success = 0


class cudaStatus:
    """torch.cuda.cudaStatus (2.15)."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class CudaError(RuntimeError):
    """torch.cuda.CudaError (2.15): a code with the driver's text."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_error_string(code)} ({int(code)})")
        self._code = int(code)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._code,)


class DeferredCudaCallError(Exception):
    """torch.cuda.DeferredCudaCallError (2.15): never raised here, for nothing is deferred."""


def _error_string(error: int) -> str:
    return _TEXTS.get(int(error), "unrecognized error code")


def _stream_create(address: int) -> int:
    try:
        handle = _interop.new_raw(_current.current_device())
    except HalError as exc:
        return exc.code or 999
    ctypes.c_void_p.from_address(address).value = handle
    return cudaError.success


def _stream_destroy(handle: int) -> int:
    try:
        _interop.close_raw(handle)
    except InvalidHandleError:
        return 400
    except HalError as exc:
        return exc.code or 999
    return cudaError.success


def _mem_get_info(device: int) -> tuple[int, int]:
    return mem_get_info(int(device))


def _host_register(address: int, nbytes: int, flags: int) -> int:
    return _code(_memory.register, int(address), int(nbytes))


def _host_unregister(address: int) -> int:
    return _code(_memory.unregister, int(address))


def _code(function: Callable[..., object], *args: int) -> int:
    try:
        function(*args)
    except HalError as exc:
        return exc.code or {"invalid_value": 1, "not_ready": 600}.get(exc.kind, 999)
    return cudaError.success


_cudart = SimpleNamespace(
    cudaError=cudaError,
    cudaGetErrorString=_error_string,
    cudaHostRegister=_host_register,
    cudaHostUnregister=_host_unregister,
    cudaMemGetInfo=_mem_get_info,
    cudaStreamCreate=_stream_create,
    cudaStreamDestroy=_stream_destroy,
)


def cudart() -> Any:
    """torch.cuda.cudart (2.15): error texts, memory, streams that belong to no Python object."""
    return _cudart


def check_error(res: int) -> None:
    """torch.cuda.check_error (2.15): raises `CudaError` for every code but 0."""
    if res != cudaError.success:
        raise CudaError(res)
