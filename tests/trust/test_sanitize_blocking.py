"""What calls that block order for the host: what the vendor documents, not what a device happens to do.

Source: CUDA driver API, "API synchronization behavior".
"""

from __future__ import annotations

from collections.abc import Callable

import halstream as hs
import numpy as np
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import runtime

LIMIT = 10.0
SMALL, LARGE = 64, 1 << 17  # within what a call stages, and beyond

pytestmark = pytest.mark.usefixtures("backend")


class Kit:
    def __init__(self, size: int) -> None:
        self.size = size
        self.x, self.y, self.z = (hs.empty(size, np.uint8) for _ in range(3))
        self.pinned, self.other = hs.pinned_empty(size, np.uint8), hs.pinned_empty(size, np.uint8)
        self.pageable = np.zeros(size, np.uint8)
        self.stream = cuda.Stream(non_blocking=True)

    def copy(self, to: int, source: int, kind: int) -> None:
        runtime.memcpy(to, source, self.size, kind)

    def write(self, address: int) -> None:
        """Write on a stream without order with the default stream."""
        runtime.memsetAsync(address, 2, self.size, self.stream.ptr)


Step = Callable[[Kit], None]
H2H, H2D, D2H, D2D = 0, 1, 2, 3

ROWS: dict[str, tuple[str, Step, Step]] = {
    "host to host": (
        "",
        lambda k: k.copy(k.other.ctypes.data, k.pinned.ctypes.data, H2H),
        lambda k: k.write(k.other.ctypes.data),
    ),
    "device to pinned": (
        "",
        lambda k: k.copy(k.pinned.ctypes.data, k.x.ptr, D2H),
        lambda k: (k.write(k.x.ptr), k.write(k.pinned.ctypes.data))[0],
    ),
    "device to pageable": (
        "",
        lambda k: k.copy(k.pageable.ctypes.data, k.x.ptr, D2H),
        lambda k: k.write(k.x.ptr),
    ),
    "pinned to device": ("", lambda k: k.copy(k.x.ptr, k.pinned.ctypes.data, H2D), lambda k: k.write(k.x.ptr)),
    "pageable to device": ("race", lambda k: k.copy(k.x.ptr, k.pageable.ctypes.data, H2D), lambda k: k.write(k.x.ptr)),
    "pageable to device, what was before": (
        "",
        lambda k: (runtime.memset(k.y.ptr, 1, k.size), k.copy(k.x.ptr, k.pageable.ctypes.data, H2D))[0],
        lambda k: k.write(k.y.ptr),
    ),
    "pageable to device, the source": (
        "",
        lambda k: k.copy(k.x.ptr, k.pageable.ctypes.data, H2D),
        lambda k: hs.host_access(k.pageable, "w"),
    ),
    "device to device": ("race", lambda k: k.copy(k.x.ptr, k.y.ptr, D2D), lambda k: k.write(k.x.ptr)),
    "device to device, what was before": (
        "race",
        lambda k: (runtime.memset(k.z.ptr, 1, k.size), k.copy(k.x.ptr, k.y.ptr, D2D))[0],
        lambda k: k.write(k.z.ptr),
    ),
    "rows, device to device": (
        "race",
        lambda k: runtime.memcpy2D(k.x.ptr, 8, k.y.ptr, 8, 8, k.size // 8, D2D),
        lambda k: k.write(k.x.ptr),
    ),
    "fill of device memory": ("race", lambda k: runtime.memset(k.x.ptr, 1, k.size), lambda k: k.write(k.x.ptr)),
    "fill of pinned memory": (
        "",
        lambda k: runtime.memset(k.pinned.ctypes.data, 1, k.size),
        lambda k: k.write(k.pinned.ctypes.data),
    ),
}


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", ROWS)
def test_V8_a_call_that_blocks_orders_what_the_vendor_documents(name: str, size: int) -> None:
    expected, call, conflicting = ROWS[name]
    kit = Kit(size)
    hs.synchronize(timeout=LIMIT)
    with hs.sanitize(on="collect") as report:
        call(kit)
        conflicting(kit)
        hs.synchronize(timeout=LIMIT)
    assert {f.category for f in report.all} == ({expected} if expected else set()), str(report)


@pytest.mark.needs("host")
@pytest.mark.parametrize("make", ["function", "object"])
def test_V8_a_fill_of_managed_memory_is_done_when_it_returns(make: str) -> None:
    kit = Kit(SMALL)
    memory = cuda.ManagedMemory(SMALL) if make == "object" else None
    address = memory.ptr if memory is not None else runtime.mallocManaged(SMALL)
    with hs.sanitize():
        runtime.memset(address, 1, SMALL)
        kit.write(address)
        hs.synchronize(timeout=LIMIT)
    if memory is None:
        runtime.free(address)
