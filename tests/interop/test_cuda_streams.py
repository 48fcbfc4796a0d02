"""Streams of the driver that other libraries made, and ours in their hands."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from ctypes import byref, c_size_t, c_ubyte, c_uint64, c_void_p
from typing import Any

import halstream as hs
import numpy as np
import pytest
from other_library import NOT_READY, Library, Theirs

LIMIT = 10.0
Hold = Callable[[Any], Any]
Make = Callable[..., Library]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("cuda-driver")]


def test_a_stream_is_the_drivers_own(hold: Hold, library: Make) -> None:
    s = hs.Stream(non_blocking=True)
    assert s.__cuda_stream__() == (0, s.handle)
    gate = hold(s)
    assert library().query(s.handle) == NOT_READY
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert library().query(s.handle) == 0


def test_foreign_streams_wait_for_work_of_the_runtime_by_driver_events(hold: Hold, library: Make) -> None:
    theirs, s = library(), hs.Stream(non_blocking=True)
    stream, event = theirs.stream(), c_void_p()
    theirs.check(theirs.call("cuEventCreate", byref(event), 2))
    gate = hold(s)
    theirs.check(theirs.call("cuEventRecord", event, c_void_p(s.handle)))
    theirs.check(theirs.call("cuStreamWaitEvent", c_void_p(stream), event, 0))
    assert theirs.query(stream) == NOT_READY
    gate.open()
    theirs.check(theirs.call("cuStreamSynchronize", c_void_p(stream)))
    theirs.check(theirs.call("cuEventDestroy_v2", event))
    theirs.destroy(stream)


@pytest.mark.parametrize("flags", [0, 1])
def test_a_stream_of_another_library_takes_work_of_every_kind(flags: int, library: Make, hold: Hold) -> None:
    theirs, ran = library(), []
    handle = theirs.stream(flags)
    s = hs.Stream.from_handle(handle)
    assert s.handle == handle and s.non_blocking == bool(flags)
    x = hs.empty(4)
    gate = hold(s)
    x.fill(2.0, s)
    s.call(ran.append, 1)
    e = s.record()
    assert not s.query() and not e.query() and theirs.query(handle) == NOT_READY
    gate.open()
    assert x.numpy(s).tolist() == [2.0] * 4
    assert ran == [1] and e.query() and theirs.query(handle) == 0
    del s, e
    gc.collect()
    hs.Stream()
    assert theirs.query(handle) == 0


def test_work_of_both_libraries_on_a_foreign_stream_runs_in_call_order(library: Make) -> None:
    theirs = library()
    handle = theirs.stream()
    s, x = hs.Stream.from_handle(handle), hs.empty(4, np.uint8)
    x.fill(1, s)
    theirs.check(theirs.call("cuMemsetD8Async", c_uint64(x.ptr + 2), c_ubyte(9), c_size_t(2), c_void_p(handle)))
    assert x.numpy(s).tolist() == [1, 1, 9, 9]
    del s
    theirs.destroy(handle)


def test_only_its_maker_closes_it(library: Make) -> None:
    theirs = library()
    handle = theirs.stream()
    s = hs.Stream.from_cuda_stream(Theirs(handle))
    with pytest.raises(hs.InvalidValueError, match="maker can close it"):
        s.close()
    del s
    gc.collect()
    hs.Stream().synchronize(timeout=LIMIT)
    assert theirs.query(handle) == 0
    theirs.destroy(handle)


def test_a_stream_that_its_maker_destroyed_is_named(library: Make) -> None:
    theirs = library()
    control = getattr(theirs.driver, "fakecuda_control", None)
    if control is None:
        pytest.skip("a driver may crash on the handle of a destroyed stream")
    handle = theirs.stream()
    theirs.destroy(handle)
    control(b"strict 0")
    try:
        with pytest.raises(hs.InvalidHandleError, match=rf"{handle:#x} is no stream of this process"):
            hs.Stream.from_handle(handle)
    finally:
        if os.environ.get("FAKECUDA_PROFILE") == "silicon":
            control(b"strict 1")


def test_the_device_of_a_foreign_stream_is_read_from_the_stream(library: Make) -> None:
    far = library(1)
    handle = far.stream()
    for asked in (None, 0, 1):
        s = hs.Stream.from_handle(handle, asked)
        x = hs.empty(4, device=1)
        x.fill(3.0, s)
        assert s.device == hs.Device(1) and x.numpy(s).tolist() == [3.0] * 4
    with pytest.raises(hs.WrongDeviceError):
        s.record(hs.Event(device=0))
    del s
    gc.collect()
    far.destroy(handle)


def test_the_handle_of_a_stream_of_the_runtime_gives_that_stream() -> None:
    s = hs.Stream(device=1)
    again = hs.Stream.from_cuda_stream(Theirs(s.handle))
    assert again == s and again.device == hs.Device(1)


def test_own_and_foreign_streams_wait_for_each_other(library: Make, hold: Hold) -> None:
    theirs = library()
    handle = theirs.stream()
    foreign, ours, last = hs.Stream.from_handle(handle), hs.Stream(), hs.Stream(non_blocking=True)
    gate = hold(ours)
    foreign.wait(ours)
    last.wait(Theirs(handle))
    last.nop()
    assert theirs.query(handle) == NOT_READY and not last.query()
    gate.open()
    last.synchronize(timeout=LIMIT)
    del foreign
    theirs.destroy(handle)


def test_dialects_take_a_drivers_stream(library: Make) -> None:
    from halstream import cupy, torch

    theirs = library()
    handle = theirs.stream()
    outside = torch.cuda.ExternalStream(handle)
    assert outside.cuda_stream == handle
    with torch.cuda.stream(outside):
        assert torch.cuda.current_stream() == outside
    outside.synchronize()
    external = cupy.cuda.Stream.from_external(Theirs(handle))
    with external:
        total = cupy.arange(3) + 1
    external.synchronize()
    assert cupy.asnumpy(total).tolist() == [1, 2, 3]
    del outside, external
    gc.collect()
    theirs.destroy(handle)


def test_the_default_streams_are_the_drivers(hold: Hold, library: Make) -> None:
    # 1 and 2 are the numbers that the driver gives them.
    default = hs.Device(0).default_stream
    assert default.__cuda_stream__() == (0, 0)
    assert hs.Stream.from_cuda_stream(Theirs(1)) == default
    gate = hold(default)
    assert library().query(1) == NOT_READY
    gate.open()
    default.synchronize(timeout=LIMIT)
    assert library().query(1) == 0


def test_work_that_another_library_enqueues_on_a_stream_is_waited_for(library: Make, hold: Hold) -> None:
    theirs, held, s = library(), hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    event = c_void_p()
    theirs.check(theirs.call("cuEventCreate", byref(event), 2))
    gate = hold(held)
    theirs.check(theirs.call("cuEventRecord", event, c_void_p(held.handle)))
    theirs.check(theirs.call("cuStreamWaitEvent", c_void_p(s.handle), event, 0))
    assert not s.query()
    with pytest.raises(hs.WaitTimeoutError):
        s.synchronize(timeout=0.02)
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert s.query()
    theirs.check(theirs.call("cuEventDestroy_v2", event))
