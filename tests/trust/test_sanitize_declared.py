"""Accesses that a function declares, arrays with gaps among them, and strict checks of those that do not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._schedules.block import schedule
from reach_help import LIMIT, Kit

pytestmark = pytest.mark.needs("schedules")

# -- declared accesses -----------------------------------------------------------


def test_V20_accesses_belong_to_a_function(backend: str) -> None:
    for make in (
        lambda k: k.a.call(hs.accesses(lambda: k.view.fill(1), writes=[k.x])),
        lambda k: k.a.call_many([hs.accesses(lambda: k.view.fill(1), writes=[k.x])]),
        lambda k: k.a.call_many([(hs.accesses(lambda n: k.view.fill(n), writes=[k.x]), 1)]),
        lambda k: k.a.call_checked(hs.accesses(lambda: k.view.fill(1), writes=[k.x])),
    ):
        with hs.sanitize(on="collect") as report:  # on real threads, too
            k = Kit()
            make(k)
            k.x.fill(3, k.b)
            k.end()
        assert len(report.races) == 1 and not report.races[0].first.observed
        assert (report.functions.declared, report.functions.unknown) == (1, [])
    assert (k.view == 1).all() or (k.view == 3).all()


def test_V20_to_declare_nothing_is_an_answer(backend: str) -> None:
    for call in (
        lambda k: k.a.call(lambda: k.view[0:4], reads=()),
        lambda k: k.a.call(hs.accesses(lambda: k.view[0:4])),
        lambda k: k.a.call(lambda v: None, k.x, writes=[]),
    ):
        with schedule("fifo"), hs.sanitize(strict=True) as report:
            k = Kit()
            call(k)
            k.x.fill(3, k.b)
            k.end()
        assert report.functions.declared == 1


def test_accesses_refuses_what_has_no_memory(backend: str) -> None:
    with pytest.raises(TypeError, match="is no buffer"):
        hs.accesses(print, reads=[object()])
    with pytest.raises(TypeError, match="takes a function"):
        hs.accesses(3)  # type: ignore[arg-type]
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    with pytest.raises(hs.InvalidValueError, match="read-only"):
        hs.accesses(print, writes=[fixed])
    assert hs.accesses(lambda n: n + 1)(2) == 3 and "reads 0, writes 0" in repr(hs.accesses(print))


def test_V20_cupy_takes_accesses_wherever_it_takes_a_function(backend: str) -> None:
    from halstream import cupy

    runtime = cupy.cuda.runtime
    for enqueue in (
        lambda s, f, **given: s.add_callback(f, None, **given),
        lambda s, f, **given: s.launch_host_func(f, None, **given),
        lambda s, f, **given: runtime.launchHostFunc(s.ptr, f, 0, **given),
        lambda s, f, **given: runtime.streamAddCallback(s.ptr, f, 0, **given),
    ):
        with schedule("fifo"), hs.sanitize(on="collect") as report:
            k = Kit()
            s = cupy.cuda.Stream(non_blocking=True)
            enqueue(s, lambda *_, view=k.view: view.fill(1), writes=[k.x])
            k.x.fill(3, k.b)
            s.synchronize()
            k.end()
        assert len(report.races) == 1 and report.functions.declared == 1


def test_V20_acl_takes_accesses_wherever_it_takes_a_function(backend: str) -> None:
    from halstream import acl

    begun = acl.init() == 0  # not where another test of the process did it
    assert acl.rt.set_device(0) == 0
    try:
        with schedule("fifo"), hs.sanitize(on="collect") as report:
            k = Kit()
            stream, code = acl.rt.create_stream()
            assert code == 0
            assert acl.rt.launch_host_func(stream, lambda _: k.view.fill(1), None, writes=[k.x]) == 0
            k.x.fill(3, k.b)
            assert acl.rt.synchronize_stream(stream) == 0
            k.end()
        assert len(report.races) == 1 and report.functions.declared == 1
        with schedule("fifo"), hs.sanitize(on="collect") as report:
            k = Kit()
            served, code = acl.rt.create_stream()
            assert code == 0 and acl.rt.subscribe_report(threading.get_ident(), served) == 0
            assert acl.rt.launch_callback(lambda _: k.view.fill(1), None, 1, served, writes=[k.x]) == 0
            k.x.fill(3, k.b)
            assert acl.rt.process_report(1000) == 0
            assert acl.rt.unsubscribe_report(threading.get_ident(), served) == 0
            k.end()
        assert len(report.races) == 1 and report.functions.declared == 1
    finally:
        acl.rt.reset_device(0)
        if begun:
            acl.finalize()


# -- strided ranges ---------------------------------------------------------------


def test_V21_even_and_odd_elements_do_not_conflict(backend: str) -> None:
    def program(one: slice, two: slice) -> Any:
        with hs.sanitize(on="collect") as report:
            a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
            x = np.asarray(hs.zeros(64, np.float32))
            hs.synchronize(timeout=LIMIT)
            a.call(lambda v: v.fill(1), x[one], writes=[x[one]])
            b.call(lambda v: v.sum(), x[two], reads=[x[two]])
            a.call(lambda v: None, x[one])
            a.synchronize(timeout=LIMIT)
            b.synchronize(timeout=LIMIT)
        return report

    assert not program(slice(0, None, 2), slice(1, None, 2)).all
    assert not program(slice(None, None, -2), slice(0, None, 2)).all
    (found,) = program(slice(0, None, 2), slice(32, None, 4)).races
    assert found.nbytes == 4


def test_V21_the_pieces_of_strided_arrays(backend: str) -> None:
    from halstream._core._declared import pieces

    x = np.zeros((4, 6), np.int16)
    at = x.__array_interface__["data"][0]

    def of(view: Any) -> list[tuple[int, int, int, int]]:
        return [(start - at, *rest) for start, *rest in pieces(view)]

    assert of(x) == [(0, 48, 48, 1)] and of(x.T) == [(0, 48, 48, 1)]
    assert of(x[:, 1:3]) == [(2, 4, 12, 4)]
    assert of(x[::2]) == [(0, 12, 24, 2)]
    assert of(x[::-1, ::-1]) == [(0, 48, 48, 1)]
    assert of(x[1:, ::3]) == [(12, 2, 6, 2), (24, 2, 6, 2), (36, 2, 6, 2)]
    assert of(x[:, :0]) == [(0, 0, 0, 1)]
    assert of(np.broadcast_to(x[0], (5, 6))) == [(0, 12, 12, 1)]
    assert of(np.lib.stride_tricks.sliding_window_view(x[0], 3)) == [(0, 12, 12, 1)]
    wide = np.zeros(3 * 4097, np.uint8)
    ((_, nbytes, _, count),) = pieces(wide[::3])
    assert (nbytes, count) == (3 * 4096 + 1, 1), "of too many pieces the whole range counts"


# -- strict ------------------------------------------------------------------------


def test_V20_strict_raises_for_functions_of_unknown_accesses(backend: str) -> None:
    with pytest.raises(hs.UnorderedAccessError, match=r"(?s)accesses of 1 function are not known.*it can reach `view`"):
        _raise(lambda view: lambda: view[0:4])
    _raise(lambda view: lambda: view.sum())
    with (
        pytest.raises(hs.UnorderedAccessError, match="is seen under a deterministic schedule only"),
        hs.sanitize(strict=True, threads=True),
    ):
        k = Kit()
        k.a.call(k.view.sum)
        k.end()
    with pytest.warns(hs.UnorderedAccessWarning, match="are not known"), hs.sanitize(on="warn", strict=True):
        k = Kit()
        k.a.call(lambda: k.view[0:4])
        k.end()


def test_strict_names_each_function_once(backend: str) -> None:
    with hs.sanitize(on="collect", threads=True) as report:
        k = Kit()
        k.a.call(k.view.sum)
        first = report.functions.gaps()
        k.a.call(lambda: k.view[0:4])
        second = report.functions.gaps(known=1)
        k.end()
    assert "ndarray.sum" in first and "ndarray.sum" not in second and "it can reach" in second
    assert report.functions.gaps(known=2) == ""


def _raise(make: Callable[[Any], Any]) -> None:
    with schedule("fifo"), hs.sanitize(strict=True):
        k = Kit()
        k.a.call(make(k.view))
        k.end()
