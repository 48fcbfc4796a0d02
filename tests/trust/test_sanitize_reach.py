"""Accesses that a function does not declare: what it writes, what it can reach, and what stays unknown."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._schedules.block import schedule

LIMIT = 10.0

pytestmark = pytest.mark.needs("schedules")


class Kit:
    """Two streams without order between them, and an array with a view of it."""

    def __init__(self) -> None:
        self.a, self.b = (hs.Stream(non_blocking=True) for _ in range(2))
        self.x = hs.zeros(16, np.uint8)
        hs.synchronize(timeout=LIMIT)
        self.view = np.asarray(self.x)
        self.out = hs.pinned_empty(16, np.uint8)

    def end(self) -> None:
        self.a.synchronize(timeout=LIMIT)
        self.b.synchronize(timeout=LIMIT)


_GLOBAL: dict[str, Any] = {}


def _native(k: Kit) -> Callable[[], None]:
    memset = ctypes.CDLL(None).memset
    address = k.x.ptr
    return lambda: memset(ctypes.c_void_p(address), 7, 4)


def _global(k: Kit) -> Callable[[], None]:
    _GLOBAL["view"] = k.view
    return lambda: _GLOBAL["view"].__setitem__(slice(0, 4), 7)


def _attribute(k: Kit) -> Callable[[], None]:
    class Step:
        def __init__(self, views: list[Any]) -> None:
            self.views = views

        def run(self) -> None:
            self.views[0][0:4] = 7

    return Step([k.view]).run


@pytest.mark.parametrize("make", [_native, _global, _attribute])
def test_V4_what_a_function_writes_without_naming_it_is_seen(backend: str, make: Callable[[Kit], Any]) -> None:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        k = Kit()
        k.a.call(make(k))
        k.b.call(lambda v: v.sum(), k.x)
        k.end()
    _GLOBAL.clear()
    found = next(f for f in report if f.first.observed)
    assert (found.start - found.block, found.nbytes) == (0, 4)
    with schedule("fifo"), hs.sanitize():
        k = Kit()
        k.a.call(make(k))
        k.b.wait(k.a.record())
        k.b.call(lambda v: v.sum(), k.x)
        k.end()


def test_V4_a_kernel_that_writes_a_global_is_seen(backend: str) -> None:
    space: dict[str, Any] = {}
    exec("def host(grid, block, target):\n    target[:] = 1\n    other[3] = 1\n", space)
    kernel = hs.Kernel(host=space["host"], name="touch", signature="out uint8 *target")
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        k = Kit()
        space["other"] = k.view
        k.a.launch(kernel, 1, 1, hs.empty(4, np.uint8))
        k.out[:] = 0
        k.x.copy_to(k.out, k.b)
        k.end()
    (found,) = report
    assert (found.start - found.block, found.nbytes) == (3, 1)


def test_V4_a_native_function_by_its_address_is_watched(backend: str) -> None:
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def fill(address: int) -> None:
        ctypes.memset(address, 7, 4)

    with schedule("fifo"), hs.sanitize(on="collect") as report:
        k = Kit()
        k.a.call_native(ctypes.cast(fill, ctypes.c_void_p).value, k.x.ptr)
        k.x.copy_to(k.out, k.b)
        k.end()
    (found,) = report
    assert (found.start - found.block, found.nbytes, found.first.kind) == (0, 4, "native")


def test_V4_declared_writes_are_not_reported_twice(backend: str) -> None:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        k = Kit()
        k.a.call(k.view.fill, 7, writes=[k.x])
        k.x.copy_to(k.out, k.b)
        k.end()
    (found,) = report
    assert not found.first.observed and found.pairs == 1
