"""The CUDA driver by ctypes, for probes that must see it without a runtime between.

Standard library only. Result codes are returned, not raised: a probe asks
which code comes.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

LIBRARY = "libcuda.so.1"
GEQ, EQ = 0, 1  # conditions of a stream's wait for a value
NOT_SUPPORTED = 801
LIMIT_S = 10.0

u32, u64, size, handle = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p


class AbsentError(Exception):
    """There is no driver, or no device; the text is one sentence."""


class DriverError(Exception):
    """A call that a probe needs failed."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} gave {code}")
        self.code = code


class Driver:
    """libcuda, or a library that looks like it.

    ``cu("cuEventQuery", e)`` calls and returns the code (801 for a function
    that the library does not have), ``need(...)`` raises unless that is 0.
    """

    def __init__(self, library: str = "") -> None:
        self.path = library or LIBRARY
        try:
            self.library = ctypes.CDLL(self.path)
        except OSError as exc:
            raise AbsentError(f"There is no CUDA driver on this machine: {exc}.") from None
        code = self.cu("cuInit", u32(0))
        count = ctypes.c_int(0)
        code = code or self.cu("cuDeviceGetCount", ctypes.byref(count))
        if code or not count.value:
            what = f"its first call gave {code}" if code else "it has no device"
            raise AbsentError(f"There is a CUDA driver ({self.path}), but {what}.")
        self.count = count.value

    @property
    def fake(self) -> bool:
        """Whether this is the look-alike of the tests."""
        return hasattr(self.library, "fakecuda_is_fake")

    def has(self, name: str) -> bool:
        """Whether the library exports a symbol."""
        return hasattr(self.library, name)

    def cu(self, name: str, *args: Any) -> int:
        """Call a function and return its code."""
        try:
            function = getattr(self.library, name)
        except AttributeError:
            return NOT_SUPPORTED
        return int(function(*args))

    def need(self, name: str, *args: Any) -> None:
        """Call a function that must succeed.

        Raises
        ------
        DriverError
            If it does not.
        """
        code = self.cu(name, *args)
        if code:
            raise DriverError(name, code)

    def out(self, kind: Any, name: str, *args: Any) -> Any:
        """Call a function whose first argument is where it puts its answer; return the answer."""
        box = kind()
        self.need(name, ctypes.byref(box), *args)
        return box.value

    def version(self) -> int:
        """Return the newest version of the interface that the driver knows."""
        return int(self.out(ctypes.c_int, "cuDriverGetVersion"))

    def attribute(self, number: int, device: int = 0) -> int | None:
        """Return an attribute of a device, None where the driver does not know it."""
        box = ctypes.c_int(0)
        return None if self.cu("cuDeviceGetAttribute", ctypes.byref(box), number, device) else box.value

    def describe(self) -> dict[str, Any]:
        """Return what a reader of figures must know of the machine."""
        found: dict[str, Any] = {"driver": self.version(), "library": self.path, "devices": []}
        for ordinal in range(self.count):
            name = ctypes.create_string_buffer(256)
            self.need("cuDeviceGetName", name, 256, ordinal)
            total = size(0)
            self.need("cuDeviceTotalMem_v2", ctypes.byref(total), ordinal)
            capability = f"{self.attribute(75, ordinal)}.{self.attribute(76, ordinal)}"
            found["devices"].append(
                {
                    "name": "fake" if self.fake else name.value.decode(),
                    "capability": capability,
                    "memory": total.value,
                    "multiprocessors": self.attribute(16, ordinal),
                    "copy engines": self.attribute(40, ordinal),
                    "memory pools": self.attribute(115, ordinal),
                    "64-bit memory operations": self.attribute(122, ordinal),
                }
            )
        return found

    def context(self, ordinal: int = 0) -> int:
        """Make the device's primary context current and return it."""
        context = int(self.out(handle, "cuDevicePrimaryCtxRetain", ordinal))
        self.need("cuCtxSetCurrent", handle(context))
        return context

    def stream(self) -> Any:
        """Return a new non-blocking stream."""
        return handle(self.out(handle, "cuStreamCreate", u32(1)))

    def event(self, timing: bool = True) -> Any:
        """Return a new event."""
        return handle(self.out(handle, "cuEventCreate", u32(0 if timing else 2)))

    def pinned(self, count: int) -> int:
        """Return the address of pinned memory, zeroed."""
        address = int(self.out(handle, "cuMemHostAlloc", size(count), u32(0)))
        ctypes.memset(address, 0, count)
        return address

    def memory(self, count: int) -> Any:
        """Return the address of device memory."""
        return u64(self.out(u64, "cuMemAlloc_v2", size(count)))

    def hold(self, stream: Any) -> Hold:
        """Hold a stream until `Hold.open`."""
        return Hold(self, stream)

    def wait(self, stream: Any) -> None:
        """Wait for a stream.

        Raises
        ------
        TimeoutError
            After ten seconds.
        """
        end = time.monotonic() + LIMIT_S
        while code := self.cu("cuStreamQuery", stream):
            if code != 600:
                raise DriverError("cuStreamQuery", code)
            if time.monotonic() > end:
                raise TimeoutError(f"the stream is not done after {LIMIT_S:.0f} s")


class Hold:
    """A wait of a stream for a value in pinned memory."""

    def __init__(self, driver: Driver, stream: Any) -> None:
        self._word = u32.from_address(driver.pinned(4))
        address = u64(ctypes.addressof(self._word))
        driver.need("cuStreamWaitValue32_v2", stream, address, u32(1), u32(EQ))

    def open(self) -> None:
        """Let the stream go on; no call of the driver."""
        self._word.value = 1


class Beside(threading.Thread):
    """A call on a thread of its own, for calls that may not return."""

    def __init__(self, context: int, driver: Driver, call: Callable[[], int]) -> None:
        super().__init__(daemon=True)
        self.code: int | None = None
        self.took_us = 0.0
        self._context, self._driver, self._call = context, driver, call
        self.start()

    def run(self) -> None:
        """Make the call."""
        self._driver.need("cuCtxSetCurrent", handle(self._context))
        begin = time.perf_counter()
        code = self._call()
        self.took_us = (time.perf_counter() - begin) * 1e6
        self.code = code

    def returned(self, seconds: float) -> bool:
        """Whether the call returns within a time."""
        self.join(seconds)
        return not self.is_alive()
