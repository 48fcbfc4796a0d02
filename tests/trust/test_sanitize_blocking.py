"""What copies and fills order for the host: what the vendor documents, not what a device happens to do.

Source: CUDA driver API, "API synchronization behavior"; CANN, aclrtMemcpy and aclrtMemcpyAsync.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import acl
from halstream.acl import rt
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
        self.memory = cuda.alloc(size)

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


def assert_found(size: int, expected: str, call: Callable[[Kit], object], conflicting: Callable[[Kit], object]) -> None:
    """Require findings of one category, or none, for a call and an access behind it."""
    kit = Kit(size)
    hs.synchronize(timeout=LIMIT)
    with hs.sanitize(on="collect") as report:
        call(kit)
        conflicting(kit)
        hs.synchronize(timeout=LIMIT)
    assert {f.category for f in report.all} == ({expected} if expected else set()), str(report)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", ROWS)
def test_V8_a_call_that_blocks_orders_what_the_vendor_documents(name: str, size: int) -> None:
    assert_found(size, *ROWS[name])


def on_its_own_stream(k: Kit, to: int, source: int, kind: int) -> None:
    k.copier = cuda.Stream(non_blocking=True)  # type: ignore[attr-defined]
    runtime.memcpyAsync(to, source, k.size, kind, k.copier.ptr)  # type: ignore[attr-defined]


ASYNC_ROWS: dict[str, tuple[str, Step, Step]] = {
    "pinned to pinned": (
        "",
        lambda k: on_its_own_stream(k, k.other.ctypes.data, k.pinned.ctypes.data, H2H),
        lambda k: (k.write(k.other.ctypes.data), k.write(k.pinned.ctypes.data))[0],
    ),
    "pageable to pinned": (
        "",
        lambda k: on_its_own_stream(k, k.other.ctypes.data, k.pageable.ctypes.data, H2H),
        lambda k: k.write(k.other.ctypes.data),
    ),
    "device to pinned": (
        "race",
        lambda k: on_its_own_stream(k, k.pinned.ctypes.data, k.x.ptr, D2H),
        lambda k: k.write(k.pinned.ctypes.data),
    ),
    "device to pageable": (
        "race",
        lambda k: on_its_own_stream(k, k.pageable.ctypes.data, k.x.ptr, D2H),
        lambda k: k.write(k.x.ptr),
    ),
    "device to pageable, synchronized": (
        "",
        lambda k: (
            on_its_own_stream(k, k.pageable.ctypes.data, k.x.ptr, D2H),
            k.copier.synchronize(),  # type: ignore[attr-defined]
        )[0],
        lambda k: (k.write(k.x.ptr), hs.host_access(k.pageable, "r"))[0],
    ),
    "device to pageable, read by the host": (
        "race",
        lambda k: on_its_own_stream(k, k.pageable.ctypes.data, k.x.ptr, D2H),
        lambda k: hs.host_access(k.pageable, "r"),
    ),
    "pinned to device": (
        "race",
        lambda k: on_its_own_stream(k, k.x.ptr, k.pinned.ctypes.data, H2D),
        lambda k: k.write(k.x.ptr),
    ),
    "pageable to device": (
        "race",
        lambda k: on_its_own_stream(k, k.x.ptr, k.pageable.ctypes.data, H2D),
        lambda k: k.write(k.x.ptr),
    ),
    "pageable to device, the source": (
        "",
        lambda k: on_its_own_stream(k, k.x.ptr, k.pageable.ctypes.data, H2D),
        lambda k: hs.host_access(k.pageable, "w"),
    ),
    "device to device": (
        "race",
        lambda k: on_its_own_stream(k, k.x.ptr, k.y.ptr, D2D),
        lambda k: k.write(k.x.ptr),
    ),
    "fill of pinned memory": (
        "race",
        lambda k: runtime.memsetAsync(k.pinned.ctypes.data, 1, k.size, 0),
        lambda k: k.write(k.pinned.ctypes.data),
    ),
    "a pointer's copy to pageable memory": (
        "race",
        lambda k: k.memory.copy_to_host_async(k.pageable.ctypes.data, k.size, cuda.Stream.null),
        lambda k: k.write(k.memory.ptr),
    ),
}


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", ASYNC_ROWS)
def test_V9_an_asynchronous_call_orders_what_the_vendor_documents(name: str, size: int) -> None:
    assert_found(size, *ASYNC_ROWS[name])


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_V9_halstreams_own_copies_of_pageable_memory_are_done_where_they_wait(size: int) -> None:
    kit, stream = Kit(size), hs.Stream(non_blocking=True)
    with hs.sanitize():
        kit.x.copy_to(kit.pageable, stream)
        kit.write(kit.x.ptr)
        hs.synchronize(timeout=LIMIT)


def test_M5_a_copy_between_pinned_arrays_is_done_when_the_call_returns() -> None:
    kit = Kit(LARGE)
    kit.pinned[:] = 7
    runtime.memcpyAsync(kit.other.ctypes.data, kit.pinned.ctypes.data, LARGE, H2H, kit.stream.ptr)
    assert (kit.other == 7).all()


ACL_H2D, ACL_D2H, ACL_D2D = 1, 2, 3


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("call", ["memcpy_async", "memcpy"])
@pytest.mark.parametrize("name", ["pageable to device", "device to pageable", "pinned to device", "device to device"])
def test_V9_what_copies_of_CANN_order(name: str, call: str, size: int) -> None:
    pageable, pinned = np.zeros(size, np.uint8), hs.pinned_empty(size, np.uint8)
    checked = acl_calls()
    x, y = checked(rt.malloc(size, 0)), checked(rt.malloc(size, 0))
    to, source, kind = {
        "pageable to device": (x, pageable.ctypes.data, ACL_H2D),
        "device to pageable": (pageable.ctypes.data, x, ACL_D2H),
        "pinned to device": (x, pinned.ctypes.data, ACL_H2D),
        "device to device": (x, y, ACL_D2D),
    }[name]
    copier, other = checked(rt.create_stream()), checked(rt.create_stream())
    with hs.sanitize(on="collect") as report:
        given = (to, size, source, size, kind)
        checked(rt.memcpy(*given) if call == "memcpy" else rt.memcpy_async(*given, copier))
        checked(rt.memset_async(x, size, 1, size, other))
        checked(rt.synchronize_device())
    waits = call == "memcpy" or "pageable" in name
    assert {f.category for f in report.all} == (set() if waits else {"race"}), str(report)
    for address in (x, y):
        checked(rt.free(address))


def acl_calls() -> Callable[[Any], Any]:
    """Begin with CANN's runtime; return what checks the code of a call and returns its value."""
    acl.init()
    rt.set_device(0)

    def checked(result: Any) -> Any:
        value, code = result if isinstance(result, tuple) else (None, result)
        assert code == 0
        return value

    return checked


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
