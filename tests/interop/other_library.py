"""Another library of the process: the driver's own functions, called without the runtime."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

NOT_READY = 600
NON_BLOCKING = 1
CUDA, PINNED = 2, 3  # device types of DLPack

_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class Theirs:
    """An object with ``__cuda_stream__``."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


#: What capsules point to. It outlives the tests, as another library does: an array in a
#: reference cycle gives its memory back only when it is collected.
_KEPT: list[Any] = []


class Library:
    """Makes streams, events and memory in a device's primary context, as others do.

    The context is current on the thread only within a call.
    """

    def __init__(self, ordinal: int = 0) -> None:
        self.driver = ctypes.CDLL(os.environ.get("HALSTREAM_CUDA_LIBRARY") or "libcuda.so.1")
        self.ordinal = ordinal
        self.context = c_void_p()
        self._memory: list[int] = []
        device = c_int()
        self.check(self.driver.cuInit(0))
        self.check(self.driver.cuDeviceGet(byref(device), ordinal))
        self.check(self.driver.cuDevicePrimaryCtxRetain(byref(self.context), device))
        self.device = device

    def check(self, code: int) -> None:
        assert code == 0, f"the driver returned {code}"

    def call(self, name: str, *args: Any) -> int:
        """Call a function of the driver in the context; return its code."""
        before = c_void_p()
        self.check(self.driver.cuCtxGetCurrent(byref(before)))
        self.check(self.driver.cuCtxSetCurrent(self.context))
        code: int = getattr(self.driver, name)(*args)
        self.check(self.driver.cuCtxSetCurrent(before))
        return code

    def stream(self, flags: int = NON_BLOCKING) -> int:
        """Make a stream; return its handle."""
        handle = c_void_p()
        self.check(self.call("cuStreamCreate", byref(handle), flags))
        return int(handle.value or 0)

    def query(self, stream: int) -> int:
        """Return 0 if all work of a stream is done, `NOT_READY` if not."""
        return self.call("cuStreamQuery", c_void_p(stream))

    def destroy(self, stream: int) -> None:
        """Give a stream up."""
        self.check(self.call("cuStreamDestroy_v2", c_void_p(stream)))

    def allocate(self, values: Any) -> int:
        """Return the address of device memory with these contents."""
        address = c_uint64()
        self.check(self.call("cuMemAlloc_v2", byref(address), c_size_t(values.nbytes)))
        self._memory.append(address.value)
        self.check(self.call("cuMemcpyHtoD_v2", address, c_void_p(values.ctypes.data), c_size_t(values.nbytes)))
        return address.value

    def read(self, address: int, like: Any) -> Any:
        """Return what device memory holds, as an array like this one."""
        out = np.empty_like(like)
        self.check(self.call("cuMemcpyDtoH_v2", c_void_p(out.ctypes.data), c_uint64(address), c_size_t(out.nbytes)))
        return out

    def capsule(self, address: int, values: Any, deleted: Callable[[], object]) -> Any:
        """Return DLPack's capsule, without a version, of memory that has an array's shape and dtype."""
        shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        deleter = _Deleter(lambda _: deleted() and None)
        code = {"i": 0, "u": 1, "f": 2}[values.dtype.kind]
        tensor = struct.pack("=QiiiBBHQQQ", address, CUDA, self.ordinal, values.ndim, code, values.itemsize * 8, 1,
                             ctypes.addressof(shape), 0, 0)  # fmt: skip
        manager = struct.pack("=QQ", 0, ctypes.cast(deleter, c_void_p).value or 0)
        buffer = ctypes.create_string_buffer(tensor + manager)
        _KEPT.append((shape, deleter, buffer))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
        return new(ctypes.addressof(buffer), b"dltensor", None)

    def close(self) -> None:
        """Give its memory and its use of the context back."""
        for address in self._memory:
            self.check(self.call("cuMemFree_v2", c_uint64(address)))
        self.check(self.driver.cuDevicePrimaryCtxRelease_v2(self.device))


class Tensor:
    """A producer of DLPack on a CUDA device, which notes what it is asked."""

    def __init__(self, library: Library, values: Any) -> None:
        self.library, self.values = library, values
        self.address = library.allocate(values)
        self.asked: list[Any] = []
        self.deleted = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.library.ordinal

    def __dlpack__(self, *, stream: Any = None) -> Any:
        self.asked.append(stream)
        return self.library.capsule(self.address, self.values, self._delete)

    def _delete(self) -> None:
        self.deleted += 1

    def read(self) -> list[Any]:
        """Return the contents as the device has them."""
        out: list[Any] = self.library.read(self.address, self.values).tolist()
        return out
