"""Copies and fills: order, what is read when, rows, devices, waits that are broken off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory as memory
from halstream import _native
from halstream._records import decode

LIMIT = 10.0
STAGED = 64 << 10
Hold = Callable[[Any], Any]
Settle = Callable[[], None]
Child = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("backend")


def pattern(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return bytes that differ from block to block and from seed to seed."""
    return np.random.default_rng(seed).integers(0, 256, n, np.uint8)


def pinned(values: np.ndarray[Any, Any]) -> Any:
    out = hs.pinned_empty(values.shape, values.dtype)
    out[...] = values
    return out


class Waiting:
    """A call on a thread of its own, which is not to return yet."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.failed: BaseException | None = None

        def run() -> None:
            try:
                call()
            except BaseException as exc:
                self.failed = exc

        self.thread = threading.Thread(target=run)
        self.thread.start()

    @property
    def returned(self) -> bool:
        return not self.thread.is_alive()

    def join(self) -> None:
        self.thread.join(LIMIT)
        assert self.returned
        if self.failed:
            raise self.failed


@pytest.mark.parametrize("size", [1, 4096, 4097, 1_000_003])
def test_M3_copies_run_in_stream_order(hold: Hold, size: int) -> None:
    s, source, back = hs.Stream(), pinned(pattern(size)), hs.pinned_empty(size, np.uint8)
    a, b = hs.empty(size, np.uint8), hs.empty(size, np.uint8)
    gate = hold(s)
    a.copy_from(source, s)
    b.copy_from(a, s)
    a.fill(1, s)
    b.copy_to(back, s)
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert (back == pattern(size)).all()
    assert (a.numpy(s) == 1).all()


def test_M3_ranges_lie_in_one_live_block() -> None:
    s, a, b = hs.Stream(), memory.DeviceMemory(512), memory.DeviceMemory(512)
    for dst, src, n in (
        (a.ptr, b.ptr, 513),
        (a.ptr + 1, b.ptr, 512),
        (a.ptr, 4096, 4),
        (4096, a.ptr, 4),
        (a.ptr, b.ptr, 2**64 - 1),
        (a.ptr, 2**64 - 16, 64),
    ):
        with pytest.raises(hs.InvalidValueError):
            memory.copy(s, dst, src, n)
    memory.copy(s, a.ptr, b.ptr, 512)
    memory.copy(s, a.ptr, b.ptr, 0)
    s.synchronize(timeout=LIMIT)


def test_M3_source_and_target_do_not_overlap() -> None:
    s, a = hs.Stream(), hs.empty(300, np.uint8)
    for start in (0, 1, 99):
        with pytest.raises(hs.InvalidValueError, match="overlap"):
            a[start : start + 100].copy_from(a[0:100], s)
    a[100:200].copy_from(a[0:100], s)
    s.synchronize(timeout=LIMIT)


def test_M4_a_pinned_source_is_read_when_the_copy_runs(hold: Hold) -> None:
    s, source = hs.Stream(), pinned(pattern(1000, 1))
    target = hs.empty(1000, np.uint8)
    gate = hold(s)
    target.copy_from(source, s)
    source[:] = pattern(1000, 2)
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert (target.numpy(s) == pattern(1000, 2)).all()


@pytest.mark.parametrize("size", [1, STAGED])
def test_M5_a_small_pageable_source_is_taken_within_the_call(hold: Hold, size: int) -> None:
    s, source = hs.Stream(), pattern(size, 1)
    target = hs.empty(size, np.uint8)
    gate = hold(s)
    target.copy_from(source, s)  # returns although the stream is held
    source[:] = 0
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert (target.numpy(s) == pattern(size, 1)).all()


def test_M5_a_larger_copy_from_pageable_memory_returns_when_done(hold: Hold, settle: Settle) -> None:
    s, source = hs.Stream(), pattern(STAGED + 1, 1)
    target = hs.empty(STAGED + 1, np.uint8)
    gate = hold(s)
    call = Waiting(lambda: target.copy_from(source, s))
    settle()
    assert not call.returned
    gate.open()
    call.join()
    source[:] = 0
    assert (target.numpy(s) == pattern(STAGED + 1, 1)).all()


def test_M5_a_copy_to_pageable_memory_returns_when_done(hold: Hold, settle: Settle) -> None:
    s, target = hs.Stream(), np.zeros(4, np.uint8)
    source = hs.asarray(pattern(4, 1))
    hs.Device(0).default_stream.synchronize(timeout=LIMIT)
    gate = hold(s)
    call = Waiting(lambda: source.copy_to(target, s))
    settle()
    assert not call.returned
    gate.open()
    call.join()
    assert (target == pattern(4, 1)).all()


@pytest.mark.needs("abort")
def test_M5_an_abort_of_a_copy_is_heard(hold: Hold, settle: Settle) -> None:
    s, target = hs.Stream(), np.zeros(4, np.uint8)
    source = hs.empty(4, np.uint8)
    gate = hold(s)
    call = Waiting(lambda: source.copy_to(target, s))
    while "2 operation(s)" not in s.describe():
        settle()
    hs._native.stream_abort(s._id)
    gate.open()
    with pytest.raises(hs.AbortedError):
        call.join()
    source.copy_to(target, s)


def test_M5_a_wait_that_is_broken_off_keeps_the_memory(child: Child) -> None:
    # The copy still goes on, into an array that nobody has any more.
    done = child(
        """
        import gc, os, signal, threading, weakref
        import halstream as hs, numpy as np
        s = hs.Stream()
        source = hs.asarray(np.full(100_000, 7, np.uint8))
        hs.synchronize(0, timeout=10)
        gate = hs.testing.Gate(s)

        class Interrupt(Exception):
            pass

        def raise_it(*_):
            raise KeyboardInterrupt if kind == "key" else Interrupt

        signal.signal(signal.SIGUSR1, raise_it)
        kept = []
        for kind in ("key", "exception"):
            target = np.zeros(100_000, np.uint8)
            kept.append(weakref.ref(target))
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            try:
                source.copy_to(target, s)
            except (KeyboardInterrupt, Interrupt):
                pass
            else:
                raise SystemExit("it returned")
            del target
        gc.collect()
        assert all(ref() is not None for ref in kept), "the copy's target is gone"
        gate.open()
        s.synchronize(timeout=10)
        for ref in kept:
            target = ref()
            if target is not None:
                assert (target == 7).all()
            del target
        marker = threading.Event()
        s.call(marker.set)
        assert marker.wait(10)
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("held-streams")
def test_M6_a_blocking_copy_is_in_the_order_of_the_default_stream(hold: Hold, settle: Settle) -> None:
    ordered, free = hs.Stream(), hs.Stream(non_blocking=True)
    a = hs.zeros(16, np.uint8)
    hs.synchronize(0, timeout=LIMIT)
    out = np.zeros(16, np.uint8)
    hold(free)
    gate = hold(ordered)
    a.fill(3, ordered)
    call = Waiting(lambda: memory.copy_blocking(out.ctypes.data, a.ptr, 16))
    settle()
    assert not call.returned
    gate.open()
    call.join()
    assert (out == 3).all()
    assert not free.query()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("count", [1, 7, 5000])
def test_M8_fills_set_elements_of_1_2_and_4_bytes(dtype: Any, count: int) -> None:
    s, a = hs.Stream(), hs.empty(count + 16, dtype)
    a.fill(0, s)
    size = np.dtype(dtype).itemsize
    memory.fill(s, a.ptr + 8 * size, 0x89ABCDEF, size, count)
    got = a.numpy(s)
    assert (got[8:-8] == 0x89ABCDEF % 256**size).all()
    assert (got[:8] == 0).all() and (got[-8:] == 0).all()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(np.float64, 1.5), (np.int64, -1), (np.float32, -2.25), (np.complex128, 1 + 2j), (np.bool_, True)],
)
def test_M8_an_array_is_filled_with_any_value_of_its_dtype(dtype: Any, value: Any) -> None:
    s, a = hs.Stream(), hs.empty((3, 5), dtype)
    a.fill(value, s)
    assert (a.numpy(s) == np.full((3, 5), value, dtype)).all()


def test_M8_what_cannot_be_filled() -> None:
    s, a, host = hs.Stream(), memory.DeviceMemory(1024), np.zeros(64, np.uint8)
    for dst, size, count in (
        (a.ptr, 3, 1), (a.ptr, 0, 1), (a.ptr, 8, 1), (a.ptr + 1, 2, 1), (a.ptr + 2, 4, 1),
        (a.ptr, 4, 257), (a.ptr, 4, 2**62), (host.ctypes.data, 1, 4), (4096, 1, 1),
    ):  # fmt: skip
        with pytest.raises(hs.InvalidValueError):
            memory.fill(s, dst, 0, size, count)
    s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize("shape", [(8, 8, 8, 5), (5, 16, 9, 7), (1, 3, 2, 200), (300, 512, 300, 64)])
def test_M9_rows_leave_the_gaps_alone(shape: tuple[int, int, int, int]) -> None:
    width, to, by, height = shape
    s = hs.Stream()
    source, before = pattern(by * height, 1), pattern(to * height, 2)
    a, b = hs.asarray(source, stream=s), hs.asarray(before, stream=s)
    memory.copy_rows(s, b.ptr, to, a.ptr, by, width, height)
    want = before.reshape(height, to).copy()
    want[:, :width] = source.reshape(height, by)[:, :width]
    assert (b.numpy(s) == want.ravel()).all()


def test_M9_rows_may_lie_between_rows() -> None:
    s = hs.Stream()
    source = pattern(32 * 8, 1).reshape(8, 32)
    a = hs.asarray(source, stream=s)
    memory.copy_rows(s, a.ptr + 16, 32, a.ptr, 32, 16, 8)
    want = source.copy()
    want[:, 16:] = source[:, :16]
    assert (a.numpy(s) == want).all()
    with pytest.raises(hs.InvalidValueError, match="overlap"):
        memory.copy_rows(s, a.ptr + 15, 32, a.ptr, 32, 16, 8)


def test_M9_rows_that_no_memory_has_are_refused() -> None:
    s, a = hs.Stream(), memory.DeviceMemory(1024)
    half = a.ptr + 512
    for to, by, width, height in (
        (2**33, 2**33, 4, 2**31 + 1), (2**63, 2**63, 4, 3), (3, 4, 4, 2), (4, 3, 4, 2), (256, 256, 4, 4),
    ):  # fmt: skip
        with pytest.raises(hs.InvalidValueError):
            memory.copy_rows(s, a.ptr, to, half, by, width, height)
    memory.copy_rows(s, a.ptr, 8, half, 8, 4, 0)
    s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize("device", [0, 1])
def test_M13_copies_cross_devices_on_a_stream_of_either(device: int) -> None:
    s = hs.Stream(device=device)
    a = hs.asarray(pattern(5000), device=0)
    hs.synchronize(0, timeout=LIMIT)
    b, c = hs.empty(5000, np.uint8, device=1), hs.empty(5000, np.uint8, device=0)
    b.copy_from(a, s)
    c.copy_from(b, s)
    assert (c.numpy(s) == pattern(5000)).all()
    assert b.device.ordinal == 1


def test_M13_an_array_is_brought_to_another_device() -> None:
    a = hs.asarray(np.arange(10), device=0)
    b = hs.asarray(a, device=1)
    assert (a.device.ordinal, b.device.ordinal) == (0, 1)
    assert hs.asarray(b) is b and hs.asarray(b, device=1) is b
    assert b.numpy().tolist() == list(range(10))


def test_M13_an_array_uses_the_current_stream_of_its_own_device(hold: Hold, settle: Settle) -> None:
    # The current device is 0; what was enqueued for an array of 1 is on a stream of 1.
    gate = hold(hs.Device(1).default_stream)
    a = hs.zeros(4, np.uint8, device=1)
    out: list[Any] = []
    call = Waiting(lambda: out.append(a.numpy()))
    settle()
    assert not call.returned
    gate.open()
    call.join()
    assert out[0].tolist() == [0, 0, 0, 0]


def test_S4_a_copy_that_waits_reports_the_first_error() -> None:
    s, a = hs.Stream(), hs.zeros(4)
    hs.synchronize(0, timeout=LIMIT)

    def fail() -> None:
        raise ValueError("made nothing")

    s.call_checked(fail)
    with pytest.raises(ValueError, match="made nothing"):
        a.numpy(s)
    assert a.numpy(s).tolist() == [0, 0, 0, 0]
    s.synchronize(timeout=LIMIT)


def test_M14_the_host_declares_what_it_reads_and_writes(device: hs.Device) -> None:
    own, on_device = np.ones(8), hs.empty(8)
    address = own.__array_interface__["data"][0]
    log = _native.trace_start()
    try:
        hs.host_access(own, "w")
        on_device.copy_from(own)  # taken within the call
        hs.host_access(own, "r")
        operations = decode(_native.trace_take(log))
    finally:
        _native.trace_stop(log)
    mine, there = [{"start": address, "size": 64}], [{"start": on_device.ptr, "size": 64}]
    assert [(o["kind"], o["reads"], o["writes"]) for o in operations] == [
        ("host write", [], mine),
        ("host read", mine, []),
        ("copy", [], there),
        ("host read", mine, []),
    ]
    hs.synchronize()
