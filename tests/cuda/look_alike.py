"""For the programs of these tests: the look-alike driver that they run on, and small helpers."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Seconds after which a wait of a program counts as never ending.
LIMIT = 10.0

#: Kernels that the look-alike driver has; `fault` loses the device with the code it is given.
PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry fill_u32(.param .u64 x, .param .u32 v, .param .u32 n) { ret; }
.visible .entry scale_f32(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
.visible .entry fault(.param .u32 code) { ret; }
"""


class Driver:
    """A copy of the library that the process has loaded, or loads now."""

    def __init__(self, path: str = "") -> None:
        self.lib = ctypes.CDLL(path or os.environ["HALSTREAM_CUDA_LIBRARY"])
        self.lib.fakecuda_count.restype = ctypes.c_uint64

    def control(self, command: str) -> None:
        """Give it a command; see cuda/fakecuda/control.c."""
        assert self.lib.fakecuda_control(command.encode()) == 0, command

    def count(self, name: str) -> int:
        """Return how often a function was called, or how many objects of a kind there are."""
        found: int = self.lib.fakecuda_count(name.encode())
        assert found != 2**64 - 1, name
        return found

    def live(self) -> dict[str, int]:
        """Return the kinds of objects that are alive in the driver, and their numbers."""
        kinds = ["contexts", "streams", "events", "modules", "pools", "memory", "pinned", "registered"]
        return {kind: n for kind in kinds if (n := self.count("live." + kind))}

    def stream(self, ordinal: int = 0, flags: int = 1) -> int:
        """Make a stream as another library would; return its handle."""
        context, handle, before = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        assert self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal) == 0
        assert self.lib.cuCtxGetCurrent(ctypes.byref(before)) == 0
        assert self.lib.cuCtxSetCurrent(context) == 0
        assert self.lib.cuStreamCreate(ctypes.byref(handle), flags) == 0
        assert self.lib.cuCtxSetCurrent(before) == 0
        return int(handle.value or 0)

    def destroy(self, handle: int) -> None:
        """Destroy a stream that `stream` made."""
        assert self.lib.cuStreamDestroy_v2(ctypes.c_void_p(handle)) == 0


def error(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the error of the runtime that a call raises."""
    import halstream as hs

    try:
        result = function(*args, **kwargs)
    except hs.HalError as exc:
        return exc
    raise AssertionError(f"no error, but {result!r}")


def until(condition: Callable[[], Any], what: str) -> None:
    """Look until a condition holds; fail after `LIMIT`."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        gc.collect()
        time.sleep(0.001)


_fault: list[Any] = []


def fault(stream: Any, code: int = 700) -> None:
    """Enqueue a kernel that loses the device when it runs."""
    import halstream as hs

    if not _fault:
        _fault.append(hs.Kernel(PTX, name="fault", signature="uint32 code"))
    stream.launch(_fault[0], 1, 1, code)


def without(path: str, *names: str, to: str) -> str:
    """Write a copy of the library in which some functions cannot be found; return its path.

    Their symbols become local: the library can use them still, and nobody else.
    """
    raw = bytearray(Path(path).read_bytes())
    (sections,) = struct.unpack_from("<Q", raw, 40)
    size, count = struct.unpack_from("<HH", raw, 58)
    headers = [struct.unpack_from("<IIQQQQI", raw, sections + i * size) for i in range(count)]
    [symbols] = [h for h in headers if h[1] == 11]  # SHT_DYNSYM
    texts = headers[symbols[6]][4]
    left = {name.encode() for name in names}
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        start = texts + struct.unpack_from("<I", raw, at)[0]
        name = bytes(raw[start : raw.index(0, start)])
        if name in left:
            left.remove(name)
            raw[at + 4] &= 15  # the binding: local
    assert not left, left
    Path(to).write_bytes(raw)
    return to


def say(*what: object) -> None:
    """Print at once, so that a program that hangs later has said it."""
    print(*what, flush=True)
    sys.stdout.flush()
