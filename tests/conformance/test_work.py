"""What operations say they read and write, native functions, arrays as arguments of functions."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory as memory

LIMIT = 10.0
Hold = Callable[[Any], Any]
Settle = Callable[[], None]

pytestmark = pytest.mark.usefixtures("backend")

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.fixture
def s() -> Iterator[hs.Stream]:
    stream = hs.Stream()
    yield stream
    stream.synchronize(timeout=LIMIT)


def seen_array(count: int, dtype: Any = float) -> tuple[Any, int]:
    """Return zeros that functions can be given on every backend, and their address."""
    if hs.backend() == "host":
        array = hs.zeros(count, dtype)
        hs.synchronize(0, timeout=LIMIT)
        return array, array.ptr
    pinned = hs.pinned_empty(count, dtype)
    pinned[:] = 0
    return pinned, pinned.ctypes.data


def trace(*calls: Callable[[], object]) -> list[tuple[str, Any, Any]]:
    with hs.testing.Trace() as seen:
        for call in calls:
            call()
    return [(o.kind, o.reads, o.writes) for o in seen.operations]


# -- M11: accounts -----------------------------------------------------------


def test_M11_copies_and_fills_report_exactly_the_bytes_they_access(s: hs.Stream) -> None:
    a, b = hs.empty(100, np.uint8), hs.empty(100, np.uint8)
    seen = trace(
        lambda: b[10:20].copy_from(a[50:60], s),
        lambda: memory.copy_rows(s, b.ptr, 50, a.ptr, 20, 10, 2),
        lambda: memory.fill(s, a.ptr + 4, 1, 4, 5),
        lambda: memory.PooledMemory(64, s).free(),
    )
    assert seen[:3] == [
        ("copy", ((a.ptr + 50, 10),), ((b.ptr + 10, 10),)),
        ("copy", ((a.ptr, 10), (a.ptr + 20, 10)), ((b.ptr, 10), (b.ptr + 50, 10))),
        ("fill", (), ((a.ptr + 4, 20),)),
    ]
    assert [kind for kind, _, _ in seen[3:]] == ["allocate", "free"]
    assert seen[3][2] == seen[4][2] and seen[3][2][0][1] == 64


@pytest.mark.needs("host")
def test_M11_functions_read_their_array_arguments(s: hs.Stream) -> None:
    a, host = hs.zeros(10, np.int32), np.zeros((4, 6), np.int16)
    hs.synchronize(0, timeout=LIMIT)
    start = host.ctypes.data

    def nothing(*_: Any, **__: Any) -> None:
        pass

    seen = trace(
        lambda: s.call(nothing, a, host),
        lambda: s.call(nothing, x=a),
        lambda: s.call(nothing, host[::2, ::-1]),
        lambda: s.call(nothing, host.T),
        lambda: s.call_checked(nothing, 1, "text"),
        lambda: s.call(nothing, a, reads=[a[2:4]], writes=[host, a[5:6]]),
    )
    assert [reads for _, reads, _ in seen] == [
        ((a.ptr, 40), (start, 48)),
        ((a.ptr, 40),),
        ((start, 12), (start + 24, 12)),  # rows 0 and 2
        ((start, 48),),
        (),
        ((a.ptr + 8, 8),),
    ]
    assert [writes for _, _, writes in seen[:-1]] == [()] * 5
    assert seen[-1][2] == ((start, 48), (a.ptr + 20, 4))


def test_M11_a_native_function_reports_the_accesses_declared_for_it(s: hs.Stream) -> None:
    (a, at), (b, bt) = seen_array(4, np.int32), seen_array(4, np.int32)
    nothing = FUNCTION(lambda _: None)
    seen = trace(
        lambda: s.call_native(nothing, a),
        lambda: s.call_native(nothing, a, reads=[b], writes=[a]),
        lambda: s.call_native(nothing, 5),
    )
    s.synchronize(timeout=LIMIT)
    assert [(r, w) for kind, r, w in seen if kind == "native"] == [
        (((at, 16),), ()),
        (((bt, 16),), ((at, 16),)),
        ((), ()),
    ]


def test_M11_memory_declared_by_a_function_is_not_freed_under_it(s: hs.Stream, hold: Hold) -> None:
    pinned = memory.PinnedMemory(100)
    gate = hold(s)
    s.call(int, writes=[pinned])
    with pytest.raises(hs.NotReadyError, match="a function"):
        pinned.free()
    gate.open()
    s.synchronize(timeout=LIMIT)
    pinned.free()


# -- arrays as arguments -----------------------------------------------------


@pytest.mark.needs("host")
def test_H1_arrays_arrive_as_numpy_arrays_of_the_same_memory(s: hs.Stream) -> None:
    a = hs.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), stream=s)
    seen: list[Any] = []

    def double(x: Any, row: Any, *, factor: Any) -> None:
        seen.extend([type(x), x.shape, x.dtype, row.shape, type(factor)])
        x *= factor[0]
        row += 100

    s.call(double, a, a[1], factor=hs.asarray(np.full(1, 2, np.float32), stream=s))
    assert a.numpy(s).tolist() == [[0, 2, 4], [106, 108, 110]]
    assert seen == [np.ndarray, (2, 3), np.float32, (3,), np.ndarray]


@pytest.mark.needs("host")
def test_H1_memory_of_pending_functions_lives_until_they_have_run(hold: Hold) -> None:
    s = hs.Stream()
    a = hs.asarray(np.full(1000, 3, np.uint8), stream=s)
    owner, sums = weakref.ref(a._memory), []
    gate = hold(s)
    s.call(lambda x: sums.append(int(x.sum())), a)
    del a
    gc.collect()
    assert owner() is None
    others = [hs.zeros(1000, np.uint8) for _ in range(20)]
    others += [hs.zeros(1000, np.uint8, stream=s) for _ in range(20)]
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert sums == [3000]
    del others


@pytest.mark.needs("host")
def test_H1_a_view_that_a_function_keeps_keeps_the_memory(s: hs.Stream) -> None:
    kept: list[Any] = []
    s.call(kept.append, hs.asarray(np.arange(50), stream=s))
    s.synchronize(timeout=LIMIT)
    gc.collect()
    other = hs.zeros(50, np.int64, stream=s)
    s.synchronize(timeout=LIMIT)
    assert kept[0].tolist() == list(range(50))
    del other


@pytest.mark.needs("vendor-memory")
def test_H1_memory_that_the_host_cannot_see_is_refused_at_the_call(s: hs.Stream) -> None:
    a = hs.zeros(4, stream=s)
    for enqueue in (
        lambda: s.call(print, a),
        lambda: s.call_checked(print, x=a),
        lambda: s.call_native(FUNCTION(lambda _: None), a),
    ):
        with pytest.raises(hs.NotSupportedError, match="cannot see a device's memory"):
            enqueue()
    s.call(int, reads=[a], writes=[a])  # what it says it works on is its own affair
    assert a.numpy(s).tolist() == [0] * 4


# -- M12: native functions ---------------------------------------------------


def test_M12_native_functions_run_in_order_and_once(s: hs.Stream, hold: Hold) -> None:
    ran: list[int] = []
    first = FUNCTION(lambda p: ran.append(ctypes.c_int32.from_address(p).value))
    values = [ctypes.c_int32(i) for i in range(50)]
    gate = hold(s)
    for value in values:
        s.call_native(first, value)
    assert ran == []
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert ran == list(range(50))


def test_M12_it_runs_on_another_thread_and_holds_its_stream_only(s: hs.Stream) -> None:
    inside, let_go, threads = threading.Event(), threading.Event(), []

    def body(_: Any) -> None:
        threads.append(threading.get_ident())
        inside.set()
        let_go.wait(LIMIT)

    blocking, other = FUNCTION(body), hs.Stream()
    s.call_native(blocking)
    try:
        assert inside.wait(LIMIT)
        assert not s.query()
        a = hs.zeros(100_000, np.uint8, stream=other)
        assert (a.numpy(other) == 0).all()
    finally:
        let_go.set()
    s.synchronize(timeout=LIMIT)
    assert threads != [threading.get_ident()]


@pytest.mark.parametrize(
    "how", ["function", "address", "void", "structure", "pointer", "array", "numpy", "pinned", "none"]
)
def test_M12_every_form_of_function_and_argument(s: hs.Stream, how: str) -> None:
    seen: list[Any] = []
    function: Any = FUNCTION(lambda p: seen.append(p))

    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))

    pair, (array, at) = Pair(1, 2), seen_array(3)
    host, pinned = np.zeros(3), hs.pinned_empty(3)
    given: Any
    given, expected = {
        "function": (pair, ctypes.addressof(pair)),
        "address": (ctypes.addressof(pair), ctypes.addressof(pair)),
        "void": (ctypes.c_void_p(ctypes.addressof(pair)), ctypes.addressof(pair)),
        "structure": (pair, ctypes.addressof(pair)),
        "pointer": (ctypes.pointer(pair), ctypes.addressof(pair)),
        "array": (array, at),
        "numpy": (host, host.ctypes.data),
        "pinned": (pinned, pinned.ctypes.data),
        "none": (None, None),
    }[how]
    address = ctypes.cast(function, ctypes.c_void_p).value
    s.call_native(address if how == "address" else function, given)
    s.synchronize(timeout=LIMIT)
    assert seen == [expected]


def test_M12_function_and_argument_live_until_it_has_run(hold: Hold) -> None:
    s, seen = hs.Stream(), []
    gate = hold(s)
    function = FUNCTION(lambda p: seen.append(ctypes.c_int32.from_address(p).value))
    argument = (ctypes.c_int32 * 100)(42)
    refs = weakref.ref(function), weakref.ref(argument)
    s.call_native(function, argument)
    del function, argument
    gc.collect()
    assert all(ref() is not None for ref in refs)
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert seen == [42]
    # Afterwards they go: the last thing on the stream lets go of them.
    done = threading.Event()
    s.call(done.set)
    assert done.wait(LIMIT)
    for _ in range(1000):
        gc.collect()
        if all(ref() is None for ref in refs):
            break
        marker = threading.Event()
        hs.Stream(non_blocking=True).call(marker.set)
        marker.wait(LIMIT)
    assert all(ref() is None for ref in refs)


def test_M12_a_numba_function(s: hs.Stream) -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")

    @numba.cfunc("void(voidptr)")
    def increment(p: Any) -> None:
        values = numba.carray(p, 4, numba.int32)
        for i in range(4):
            values[i] += 1

    a, at = seen_array(4, np.int32)
    s.call_native(increment, a, writes=[a])
    out = np.zeros(4, np.int32)
    memory.copy(s, out.ctypes.data, at, 16)
    assert out.tolist() == [1, 1, 1, 1]


def test_M12_a_cffi_function(s: hs.Stream) -> None:
    cffi = pytest.importorskip("cffi", reason="cffi is not installed")
    ffi = cffi.FFI()
    seen: list[int] = []
    callback = ffi.callback("void(void *)", lambda p: seen.append(int(ffi.cast("uintptr_t", p))))
    target = ffi.new("int[4]")
    s.call_native(callback, target)
    s.synchronize(timeout=LIMIT)
    assert seen == [int(ffi.cast("uintptr_t", target))]


# -- arrays ------------------------------------------------------------------


def test_arrays_have_shape_dtype_strides_and_views(s: hs.Stream) -> None:
    values = np.arange(24, dtype=np.int16).reshape(4, 3, 2)
    a = hs.asarray(values, stream=s)
    assert (a.shape, a.dtype, a.ndim, a.size, a.nbytes, len(a)) == ((4, 3, 2), np.int16, 3, 24, 48, 4)
    assert a.strides == values.strides
    assert a[1].ptr == a.ptr + 12 and a[-1].shape == (3, 2)
    assert a[1:3].numpy(s).tolist() == values[1:3].tolist()
    assert a[3:1].size == 0
    a[1].fill(-1, s)
    values[1] = -1
    assert (a.numpy(s) == values).all()
    assert a.reshape(6, 4).shape == a.reshape((6, 4)).shape == (6, 4)
    with pytest.raises(IndexError):
        a[4]
    with pytest.raises(hs.NotSupportedError):
        a[::2]
    with pytest.raises(hs.InvalidValueError):
        a.reshape(5, 5)
    assert "(4, 3, 2) int16" in repr(a)
    with pytest.raises(TypeError):
        len(hs.zeros((), stream=s))


def test_empty_arrays_do_nothing(s: hs.Stream) -> None:
    a = hs.zeros((3, 0), np.float64, stream=s)
    a.fill(1, s)
    assert a.numpy(s).shape == (3, 0)
    assert hs.pinned_empty((0,)).nbytes == 0
    s.call(lambda x: None, a)


def test_asarray_takes_the_source_at_the_call(s: hs.Stream, hold: Hold) -> None:
    pinned = hs.pinned_empty(8, np.uint8)
    pinned[:] = 1
    gate = hold(s)
    a = hs.asarray(pinned, stream=s)
    assert hs.asarray(a) is a
    pinned[:] = 2
    gate.open()
    assert (a.numpy(s) == 1).all()


def test_pinned_arrays_are_numpy_arrays_that_keep_their_memory(s: hs.Stream) -> None:
    a = hs.pinned_empty((3, 4), np.float32)
    a[:] = np.arange(12).reshape(3, 4)
    row = a[1]
    del a
    gc.collect()
    other = hs.pinned_empty((3, 4), np.float32)
    other[:] = -1
    assert row.tolist() == [4, 5, 6, 7]
    assert memory.lookup(row.ctypes.data)[0] == memory.PINNED


def test_small_copies_over_many_streams_leave_memory_flat() -> None:
    streams = [hs.Stream(non_blocking=True) for _ in range(8)]
    source = hs.pinned_empty(256, np.uint8)
    host = np.ones(256, np.uint8)
    targets = [hs.empty(256, np.uint8) for _ in streams]

    def rounds(count: int) -> None:
        for i in range(count):
            stream, target = streams[i % 8], targets[i % 8]
            for _ in range(25):
                target.copy_from(source, stream)
                target.copy_from(host, stream)
                scratch = hs.empty(256, np.uint8, stream=stream)
                scratch.copy_from(target, stream)
            stream.synchronize(timeout=LIMIT)

    rounds(2000)  # until the collector of the core has found its pace
    before = _resident()
    rounds(4000)
    assert _resident() - before < 4 << 20


def _resident() -> int:
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
