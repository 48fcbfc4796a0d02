"""Accesses that a function does not declare: what it writes, what it can reach, and what stays unknown."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._schedules.block import schedule
from reach_help import LIMIT, Kit

pytestmark = pytest.mark.needs("schedules")


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


# -- what a function can reach -------------------------------------------------


class Model:
    """What functions of a program are methods of."""

    def __init__(self, view: Any) -> None:
        self.batch = view
        self.batches = [view]

    def step(self) -> object:
        return self.batch.sum()

    def pick(self, n: int = 0) -> object:
        return self.batches[n].sum()

    @property
    def first(self) -> Any:
        return self.batches[0]

    def look(self) -> object:
        return self.first.sum()

    def __call__(self) -> None:
        self.batch[:] = 1


def _part(view: Any, n: int) -> object:
    return view[n]


def _row(rows: Any) -> Callable[[], object]:
    return lambda: rows[0]


def _all(view: Any) -> object:
    return view.sum()


def _of_default(view: Any) -> Callable[[], object]:
    def step(batch: Any = view) -> object:
        return batch.sum()

    return step


def _of_global(view: Any) -> Callable[[], object]:
    space: dict[str, Any] = {"batch": view}
    exec("def step():\n    return batch.sum()\n", space)
    step: Callable[[], object] = space["step"]
    return step


READ: dict[str, tuple[Callable[[Any], Any], str]] = {
    "closure": (lambda view: lambda: view.sum(), "`view`, captured by `<lambda>`"),
    "written as a whole": (lambda view: lambda: view.__imul__(2), "`view`, captured by `<lambda>`"),
    "default": (_of_default, "`batch`, a default argument of `step`"),
    "global": (_of_global, "`batch`, a global of `step`"),
    "partial": (
        lambda view: functools.partial(np.multiply, view, 2),
        "`argument 1`, bound by the partial of `multiply`",
    ),
    "method": (lambda view: Model(view).step, "`self.batch`, an argument of `Model.step`"),
    "callable": (lambda view: Model(view), "`self.batch`, an argument of `Model`"),
    "method of the array": (lambda view: view.sum, "`the array`, whose method `ndarray.sum` is"),
    "helper": (lambda view: lambda: _all(view), "`view`, captured by `<lambda>`"),
    "function of NumPy": (lambda view: lambda: np.dot(view, view), "`view`, captured by `<lambda>`"),
    "function of NumPy that writes": (lambda view: lambda: np.copyto(view, view), "`view`, captured by `<lambda>`"),
}
UNKNOWN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "part": (lambda view: lambda: view[0:4], "it can reach `view`"),
    "element in a condition": (lambda view: lambda: LIMIT > 20 and view[3], "it can reach `view`"),
    "element of what is taken of it": (lambda view: lambda: view.T[3], "it can reach `view`"),
    "element that a variable chooses": (lambda view: lambda: [view[i] for i in (3,)], "it can reach `view`"),
    "row": (lambda view: _row(view.reshape(4, 4)), "it can reach `rows`"),
    "list": (lambda view: Model(view).pick, "it can reach `self.batches[0]`"),
    "property": (lambda view: Model(view).look, "it can reach `self.batches[0]`"),
    "condition": (lambda view: lambda: view.sum() if LIMIT > 20 else None, "it can reach `view`"),
    "helper": (lambda view: lambda: _part(view, 0), "it can reach `view`"),
    "view by a method": (lambda view: lambda: view.reshape(4, 4)[0].sum(), "it can reach `view`"),
    "view by a function": (lambda view: lambda: np.reshape(view, (4, 4))[0], "it can reach `view`"),
    "method for an element": (lambda view: lambda: view.item(3), "it can reach `view`"),
    "some elements": (lambda view: lambda: np.sum(view, where=[True] + [False] * 15), "it can reach `view`"),
    "iterator": (lambda view: lambda: next(iter(view)), "it can reach `view`"),
    "constructor": (lambda view: lambda: Model(view), "it can reach `view`"),
    "native": (lambda view: ctypes.CDLL(None).getpid, "is native code"),
}
NOTHING: dict[str, Callable[[Any], Any]] = {
    "list": lambda view: functools.partial([].append, 1),
    "event": lambda view: threading.Event().set,
    "shape": lambda view: lambda: (view.shape, len(view), view.nbytes),
    "nothing": lambda view: lambda: None,
    "function for a shape": lambda view: lambda: np.zeros_like(view),
}


def _run(make: Callable[[Any], Any], ordered: bool = False, **options: Any) -> Any:
    with schedule("fifo"), hs.sanitize(on="collect", **options) as report:
        k = Kit()
        k.a.call(make(k.view))
        if ordered:
            k.b.wait(k.a.record())
        k.x.fill(3, k.b)
        k.end()
    return report


@pytest.mark.parametrize("case", READ)
def test_V20_what_a_function_works_on_as_a_whole_counts_as_read(backend: str, case: str) -> None:
    make, name = READ[case]
    report = _run(make)
    assert len(report) == 1 and report.races[0].first.reached == name
    assert f"{name}, on stream" in report.races[0].text
    assert (report.functions.total, report.functions.seen, report.functions.unknown) == (1, 1, [])
    assert not _run(make, ordered=True)


@pytest.mark.parametrize(("index", "place"), [(3, 3), (-2, 14)])
def test_V20_an_element_with_a_fixed_number_counts_as_read(backend: str, index: int, place: int) -> None:
    space: dict[str, Any] = {}
    exec(f"def maker(view):\n    return lambda: int(view[{index}])\n", space)
    report = _run(space["maker"])
    (found,) = report
    assert (found.start - found.block, found.nbytes) == (place, 1)
    assert found.first.reached.startswith(f"`view[{index}]`, captured by ")
    assert (report.functions.seen, report.functions.unknown) == (1, [])
    assert not _run(space["maker"], ordered=True)


@pytest.mark.parametrize("case", UNKNOWN)
def test_V20_what_a_function_may_touch_is_no_access_and_is_named(backend: str, case: str) -> None:
    make, why = UNKNOWN[case]
    report = _run(make)
    assert not report.all
    (unknown,) = report.functions.unknown
    assert any(why in line for line in unknown.why) and unknown.frame is not None
    assert str(report).count("seen: 1 function: 1 may touch memory that is not known") == 1
    assert "reads=[...] and writes=[...]" in str(report)


@pytest.mark.parametrize("case", NOTHING)
def test_V20_a_function_that_reaches_no_memory_is_counted(backend: str, case: str) -> None:
    functions = _run(NOTHING[case]).functions
    assert (functions.total, functions.nothing, functions.unknown) == (1, 1, [])
    assert "1 touched no known memory" in functions.text


def test_V20_pinned_memory_that_a_function_reaches_is_compared(backend: str) -> None:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        k = Kit()
        outs = [k.out]
        k.a.call(lambda: outs[0].__setitem__(slice(2, 5), 7))
        k.x.copy_from(k.out, k.b)
        k.end()
    (found,) = report.races
    assert (found.start - found.block, found.nbytes) == (2, 3)
    assert found.first.reached == "`outs[0]`, captured by `<lambda>`"


def test_V20_a_walk_ends_at_its_limits(backend: str) -> None:
    deep: Any = np.zeros(1)
    for _ in range(8):
        deep = [deep]
    wide = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    loop: list[Any] = []
    loop.append(loop)
    for value in (deep, wide, loop):
        (unknown,) = _run(lambda view, value=value: lambda: str(value)).functions.unknown
        assert "more than 256 objects, or objects more than 4 deep" in unknown.why[0]

    def again() -> None:
        if LIMIT > 100:
            again()

    assert _run(lambda view: again).functions.nothing == 1
