"""The graph of 20 functions over 4 branches as a command buffer of OpenCL, where the runtime has them.

pyopencl does not know the extension, cl_khr_command_buffer, so that its functions are called
by ctypes. The call with its arguments made beforehand costs less than a method of pyopencl.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXTENSION = "cl_khr_command_buffer"
BRANCHES, LENGTH = 4, 5

_P, _U, _I, _S = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int32, ctypes.c_size_t
_PU = ctypes.POINTER(_U)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "clCreateCommandBufferKHR": (_P, _U, ctypes.POINTER(_P), _P, ctypes.POINTER(_I)),
    "clFinalizeCommandBufferKHR": (_I, _P),
    "clCommandNDRangeKernelKHR": (_I, _P, _P, _P, _P, _U, _P, _P, _P, _U, _PU, _PU, _P),
    "clEnqueueCommandBufferKHR": (_I, _U, _P, _P, _U, _P, _P),
}


def launcher(cl: Any, device: Any, queue: Any, kernel: Any) -> Callable[[], Any]:
    """Return what enqueues 4 chains of 5 kernels, which have no order among each other.

    Raises
    ------
    NotImplementedError
        If the device has no command buffers.
    RuntimeError
        If one of their functions fails.
    """
    if EXTENSION not in device.extensions.split():
        raise NotImplementedError(f"{device.platform.version} has no {EXTENSION}")
    call = _functions(device.platform)
    queues, failed = (_P * 1)(queue.int_ptr), _I()
    buffer = call["clCreateCommandBufferKHR"](1, queues, None, ctypes.byref(failed))
    _check("clCreateCommandBufferKHR", failed.value)
    size = (_S * 1)(1)
    for _ in range(BRANCHES):
        before = None
        for _ in range(LENGTH):
            point = (_U * 1)()
            chained = (1, before) if before is not None else (0, None)
            result = call["clCommandNDRangeKernelKHR"](
                buffer, None, None, kernel.int_ptr, 1, None, size, size, *chained, point, None
            )
            _check("clCommandNDRangeKernelKHR", result)
            before = point
    _check("clFinalizeCommandBufferKHR", call["clFinalizeCommandBufferKHR"](buffer))
    enqueue, given = call["clEnqueueCommandBufferKHR"], (0, None, _P(buffer), 0, None, None)
    _check("clEnqueueCommandBufferKHR", enqueue(*given))
    queue.finish()
    return lambda: enqueue(*given)


def _functions(platform: Any) -> dict[str, Any]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    loader = next(line.split()[-1] for line in lines if "libOpenCL" in line)  # the one that pyopencl has loaded
    find = ctypes.CDLL(loader).clGetExtensionFunctionAddressForPlatform
    find.restype, find.argtypes = _P, (_P, ctypes.c_char_p)
    found = {}
    for name, signature in _SIGNATURES.items():
        address = find(platform.int_ptr, name.encode())
        if not address:
            raise NotImplementedError(f"{platform.version} has no {name}")
        found[name] = ctypes.CFUNCTYPE(*signature)(address)
    return found


def _check(name: str, result: int) -> None:
    if result:
        raise RuntimeError(f"{name} returned {result}")
