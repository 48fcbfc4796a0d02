"""Every feature of the runtime once, on a driver that may lack something.

`smoke` returns what each feature ended with: "ok", or the class and the text of
the error that says that this driver cannot. Anything else is a failure.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
from halstream import _memory
from halstream._core import _context, _interop
from halstream.testing import Gate
from look_alike import PTX, error, until

FEATURES: list[Callable[[], None]] = []


def feature(function: Callable[[], None]) -> Callable[[], None]:
    """Put a function into the list of features."""
    FEATURES.append(function)
    return function


def smoke() -> dict[str, str]:
    """Try every feature; see above."""
    found = {}
    for function in FEATURES:
        try:
            function()
        except hs.NotSupportedError as exc:
            found[function.__name__] = f"{type(exc).__name__}: {exc}"
        else:
            found[function.__name__] = "ok"
        hs.synchronize(0, timeout=10)
        hs.synchronize(1, timeout=10)
        gc.collect()  # exceptions keep the streams of their frames
    return found


@feature
def functions() -> None:
    """Functions run once and in order, and their exceptions are told."""
    s = hs.Stream()
    ran: list[int] = []
    for i in range(50):
        s.call(ran.append, i)
    s.call_checked(lambda: 1 / 0)
    s.call(ran.append, 50)
    try:
        s.synchronize(timeout=10)
    except ZeroDivisionError:
        pass
    else:
        raise AssertionError("a checked function failed, and nobody was told")
    s.synchronize(timeout=10)
    assert ran == list(range(51)), ran
    seen: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: seen.append(args.exc_type)
    try:
        s.call(lambda: [][0])
        s.synchronize(timeout=10)
    finally:
        sys.unraisablehook = hook
    assert seen == [IndexError] and s.failures == 2, (seen, s.failures)


@feature
def gates() -> None:
    """Gates hold work of every kind behind them, and that of other streams that wait for it."""
    s, t, event = hs.Stream(), hs.Stream(), hs.Event()
    ran: list[int] = []
    gate, second = Gate(s), Gate(s)
    s.call(ran.append, 1)
    event.record(s)
    t.wait_event(event)
    t.call(ran.append, 2)
    second.open()
    assert not s.query() and not t.query() and not event.query()
    assert type(error(t.synchronize, timeout=0.01)) is hs.WaitTimeoutError
    assert ran == []
    gate.open()
    t.synchronize(timeout=10)
    assert ran == [1, 2] and event.query()


@feature
def events() -> None:
    """Events: recorded, queried, waited for, timed."""
    s, t = hs.Stream(), hs.Stream()
    start, end = hs.Event(timing=True), hs.Event(timing=True)
    assert start.query()
    start.record(s)
    s.delay(0.002)
    end.record(s)
    t.wait_event(end)
    end.synchronize(timeout=10)
    assert start.elapsed(end) >= 1.9
    t.wait_stream(s)
    other = hs.Stream(1)
    other.wait_stream(t)
    other.wait_event(end)
    s.wait_stream(other)
    s.synchronize(timeout=10)
    assert type(error(hs.Event().elapsed, end)) in (hs.TimingDisabledError, hs.UnrecordedError)


@feature
def waits_with_limits() -> None:
    """A stream gives a wait up when its limit has passed, and goes on."""
    # On two devices: an old driver has one thread for the functions of each.
    s, t, event = hs.Stream(1), hs.Stream(0), hs.Event()
    ran: list[int] = []
    with Gate(s):
        event.record(s)
        _context.wait_limited(t, event, 0.01)
        t.call(ran.append, 1)
        until(lambda: ran, "the function behind a wait with a limit")
        exc = error(t.synchronize, timeout=10)
        assert type(exc) is hs.WaitTimeoutError and "passed its limit" in str(exc), exc
        _context.wait_limited(t, event, 10)
        t.call(ran.append, 2)
    t.synchronize(timeout=10)
    assert ran == [1, 2]


@feature
def settable_events() -> None:
    """Events that are set by a record and reset by a reset."""
    s, t = hs.Stream(), hs.Stream()
    event = _context.Context.primary(0).event(_context.KIND_FUTURE)
    try:
        t.wait_event(event)
        assert not t.query()
        event.record(s)
        t.synchronize(timeout=10)
        _context.reset_event(t, event)
        s.wait_stream(t)
        s.wait_event(event)
        assert not s.query()
        event.record(t)
        s.synchronize(timeout=10)
    finally:
        event.close()


@feature
def copies() -> None:
    """Copies between every two kinds of memory, and rows of them."""
    s = hs.Stream()
    data = np.arange(3000, dtype=np.float32)
    x, y = hs.empty(3000, np.float32), hs.zeros(3000, np.float32)
    x.copy_from(data, s)
    data[:] = 0  # it was taken at the call
    y.copy_from(x, s)
    out = np.empty(3000, np.float32)
    y.copy_to(out, s)
    s.synchronize(timeout=10)
    assert (out == np.arange(3000)).all()
    pinned, back = hs.pinned_empty(3000, np.float32), hs.pinned_empty(3000, np.float32)
    pinned[:] = 7
    x.copy_from(pinned, s)
    x.copy_to(back, s)
    s.synchronize(timeout=10)
    assert (back == 7).all()
    pageable = np.empty(3000, np.float32)
    _memory.copy(s, pageable.ctypes.data, back.ctypes.data, 12000, pageable, back)
    s.synchronize(timeout=10)
    assert (pageable == 7).all()
    _memory.copy_blocking(x.ptr, y.ptr, 400)
    assert (x.numpy(s)[:101] == [*range(100), 7]).all()


@feature
def rows() -> None:
    """Rows of memory are copied with the gaps between them left alone."""
    s = hs.Stream()
    source, x = np.arange(60, dtype=np.uint8), hs.zeros(100, np.uint8)
    _memory.copy_rows(s, x.ptr, 10, source.ctypes.data, 6, 5, 10)
    s.synchronize(timeout=10)
    want = np.zeros((10, 10), np.uint8)
    want[:, :5] = source.reshape(10, 6)[:, :5]
    assert (x.numpy(s).reshape(10, 10) == want).all()


@feature
def copies_between_devices() -> None:
    """Memory of one device reaches another one."""
    s = hs.Stream()
    x = hs.asarray(np.arange(100, dtype=np.int32))
    far = hs.empty(100, np.int32, device=1)
    _memory.copy(s, far.ptr, x.ptr, 400, far, x)
    s.synchronize(timeout=10)
    assert (far.numpy() == np.arange(100)).all()


@feature
def fills() -> None:
    """Elements of every size."""
    s = hs.Stream()
    for dtype in (np.uint8, np.uint16, np.float32, np.float64, np.complex128):
        x = hs.zeros(64, dtype)
        x.fill(3, s)
        assert (x.numpy(s) == 3).all(), dtype


@feature
def memory() -> None:
    """Memory is counted, used again, and refused when there is none left."""
    free, total = _memory.memory_info()
    assert 0 < free <= total
    for _ in range(20):
        hs.empty(1 << 20, np.uint8).fill(1)
    exc = error(hs.empty, total + 1, np.uint8)
    assert type(exc) is hs.OutOfMemoryError and str(total + 1) in str(exc) and str(total) in str(exc), exc
    x = hs.empty(1 << 20, np.uint8)
    x.fill(5)
    assert (x.numpy() == 5).all()
    _memory.trim_pool()


@feature
def registered() -> None:
    """Memory of the program's own, pinned where it is."""
    raw = np.zeros(1 << 16, np.uint8)
    _memory.register(raw.ctypes.data, raw.nbytes)
    try:
        s, x = hs.Stream(), hs.empty(1 << 16, np.uint8)
        x.fill(9, s)
        _memory.copy(s, raw.ctypes.data, x.ptr, raw.nbytes, raw, x)
        s.synchronize(timeout=10)
        assert (raw == 9).all()
    finally:
        _memory.unregister(raw.ctypes.data)


@feature
def kernels() -> None:
    """Kernels of a program, and the errors of those that it has not."""
    s, x = hs.Stream(), hs.asarray(np.arange(32, dtype=np.float32))
    kernel = hs.Kernel(PTX, name="scale_f32", signature="inout float32 *x, float32 a, uint32 n")
    with Gate(s):
        s.launch(kernel, 1, 32, x, 2.0, 32)
    assert (x.numpy(s) == 2 * np.arange(32)).all()
    exc = error(s.launch, hs.Kernel(PTX, name="nope", signature=""), 1, 1)
    assert "nope" in str(exc) and "scale_f32" in str(exc), exc


@feature
def native() -> None:
    """A native function runs in the order of its stream."""
    seen: list[int] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda address: seen.append(threading.get_ident()))
    s = hs.Stream()
    s.call_native(function, None)
    s.synchronize(timeout=10)
    assert len(seen) == 1 and seen[0] != threading.get_ident(), seen


@feature
def default_streams() -> None:
    """The legacy default stream waits for the others; each thread has one of its own."""
    ran: list[int] = []
    blocking, legacy = hs.Stream(non_blocking=False), hs.Device(0).default_stream
    gate = Gate(blocking)
    blocking.call(ran.append, 1)
    legacy.call(ran.append, 2)
    assert not legacy.query()
    gate.open()
    legacy.synchronize(timeout=10)
    assert ran == [1, 2]
    own = hs.Device(0).per_thread_stream
    own.call(ran.append, 3)
    own.synchronize(timeout=10)
    assert ran == [1, 2, 3]


@feature
def devices() -> None:
    """All of a device can be waited for."""
    s, t = hs.Stream(1), hs.Stream(1)
    ran: list[int] = []
    gate = Gate(s)
    s.call(ran.append, 1)
    t.call(ran.append, 0)
    assert type(error(hs.synchronize, 1, timeout=0.01)) is hs.WaitTimeoutError
    gate.open()
    hs.synchronize(1, timeout=10)
    assert sorted(ran) == [0, 1]


@feature
def facts() -> None:
    """What is told about a device."""
    found = _interop.device_facts(0)
    assert found["major"] == 9 and hs.Device(0).name, found
    hs.Device(0).priority_range  # noqa: B018


@feature
def uuid() -> None:
    """The device's identity."""
    assert len(_interop.fact(0, "uuid")) == 36


@feature
def bus() -> None:
    """The device's address."""
    assert ":" in _interop.fact(0, "pci")


@feature
def peers() -> None:
    """Access of a device to the memory of another one."""
    assert _interop.can_access_peer(0, 1) in (True, False)
    _interop.enable_peer(0, 1)
    _interop.enable_peer(0, 1)


@feature
def handles() -> None:
    """Streams are found by their handles."""
    s = hs.Stream()
    assert hs.Stream.from_handle(s.handle) == s


@feature
def closing() -> None:
    """A closed stream finishes its work."""
    s = hs.Stream()
    ran: list[int] = []
    gate = Gate(s)
    s.call(ran.append, 1)
    s.close()
    gate.open()
    hs.synchronize(timeout=10)
    assert ran == [1]
