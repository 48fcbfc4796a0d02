"""A vendor's driver in the place of the look-alike: where its tests fail there, the look-alike is wrong.

It has no counters, no faults and no settings: tests that use them are skipped.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_uint64
from typing import Any
from unittest.mock import ANY

import pytest
from fakecuda_help import LIMIT, NON_BLOCKING, Driver, Word

RELAXED = 2
MEMORY_TYPE = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
#: Seconds after which a call that has not returned counts as one that waits.
HELD_S = 0.3


class RealDriver(Driver):
    """The same calls; memory is read by copies, and calls that wait are told by time."""

    real = True

    def prepare(self) -> None:
        """There are no functions of its own."""

    def is_allocated(self, address: int) -> bool:
        place = c_uint64()
        return bool(self.cuPointerGetAttribute(byref(place), MEMORY_TYPE, address) == 0 and place.value)

    def control(self, command: str) -> int:
        if command in ("reset", "faults off"):
            return 0
        pytest.skip(f"needs the look-alike's own command {command.partition(' ')[0]!r}")

    def made(self, name: str, *args: Any) -> int:
        """Call a function whose first argument is a place for a 64-bit result."""
        if name == "cuDevicePrimaryCtxRetain" and args[0] >= self._devices():
            pytest.skip(f"needs {args[0] + 1} devices")
        return super().made(name, *args)

    def _devices(self) -> int:
        count = c_int()
        assert self.cuDeviceGetCount(byref(count)) == 0
        return count.value

    def count(self, name: str) -> Any:
        if name.startswith("live."):
            return ANY  # what is left is not seen; the rest of the test counts
        pytest.skip("needs the look-alike's counters")

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of device memory through a stream of its own."""
        with self._relaxed():
            at, stream = self.pinned(size), self.stream(NON_BLOCKING)
            assert self.cuMemcpyDtoHAsync_v2(at, address, size, stream) == 0
            assert self.cuStreamSynchronize(stream) == 0
        return ctypes.string_at(at, size)

    @contextmanager
    def _relaxed(self) -> Iterator[None]:
        mode = c_int(RELAXED)
        assert self.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
        yield
        assert self.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0

    def waits(self, name: str, *args: Any, on: Word) -> bool:
        """Say whether a call returns only after a hold is opened."""
        context, codes = c_uint64(), []
        assert self.cuCtxGetCurrent(byref(context)) == 0

        def call() -> None:
            self.cuCtxSetCurrent(context.value)
            codes.append(getattr(self, name)(*args))

        thread = threading.Thread(target=call)
        thread.start()
        thread.join(HELD_S)
        waited = thread.is_alive()
        on.value = 1
        thread.join(LIMIT)
        assert codes == [0], f"{name} returned {codes}"
        return waited
