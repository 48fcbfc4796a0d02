"""Device memory, memory in stream order and pinned memory: what is given out and when."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory as memory

LIMIT = 10.0
Hold = Callable[[Any], Any]
Child = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_M1_blocks_are_aligned_disjoint_and_of_their_device() -> None:
    blocks = [memory.DeviceMemory(n, device) for n in (1, 255, 256, 4097) for device in (0, 1)]
    ends = sorted((b.ptr, b.ptr + b.nbytes) for b in blocks)
    assert all(b.ptr % 256 == 0 for b in blocks)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
    for b in blocks:
        for address in (b.ptr, b.ptr + b.nbytes - 1):
            assert memory.lookup(address) == (memory.DEVICE, b.ptr, b.nbytes, b.device)
    pinned = hs.pinned_empty(10, np.int32)
    assert memory.lookup(pinned.ctypes.data)[0] == memory.PINNED
    assert memory.lookup(np.empty(10).ctypes.data) == (memory.PAGEABLE, 0, 0, -1)


@pytest.mark.needs("host-settings")
def test_M1_out_of_memory_errors_name_the_bytes_requested_and_free(child: Child) -> None:
    done = child(
        """
        import halstream as hs, numpy as np
        from halstream import _memory as memory
        free, total = memory.memory_info(0)
        assert free == total == 1 << 20, (free, total)
        first = hs.empty(1000, np.uint8)
        free, _ = memory.memory_info(0)
        for make in (
            lambda: memory.DeviceMemory(free + 1),
            lambda: hs.empty(free + 1, np.uint8),
            lambda: memory.PooledMemory(free + 1, hs.Stream()),
        ):
            try:
                make()
            except hs.OutOfMemoryError as exc:
                assert str(free) in str(exc) and str(total) in str(exc), exc
            else:
                raise SystemExit("no error")
        try:
            hs.pinned_empty(total + 1, np.uint8)
        except hs.OutOfMemoryError as exc:
            assert str(total + 1) in str(exc), exc
        assert memory.memory_info(1) == (total, total)
        del first
        # What was collected is there again, and everything at once.
        whole = hs.zeros(total, np.uint8)
        assert whole.numpy().sum() == 0
        assert memory.memory_info(0)[0] == 0
        """,
        env={"HALSTREAM_HOST_MEMORY": str(1 << 20)},
    )
    assert done.returncode == 0, done.stderr


def test_M1_more_than_a_device_has_is_refused_with_both_numbers() -> None:
    s, (_, total) = hs.Stream(), memory.memory_info(0)
    for make in (
        lambda: memory.DeviceMemory(total + 1),
        lambda: hs.empty(total + 1, np.uint8),
        lambda: memory.PooledMemory(total + 1, s),
    ):
        with pytest.raises(hs.OutOfMemoryError, match=rf"{total + 1} bytes .* of {total} free"):
            make()


@pytest.mark.needs("host-settings")
@pytest.mark.parametrize("limit", ["0", "-5", "1GB", "65535", "9" * 30])
def test_M1_a_wrong_limit_is_refused(child: Child, limit: str) -> None:
    done = child(
        f"""
        import halstream as hs
        try:
            hs.Stream()
        except hs.InvalidValueError as exc:
            assert "HALSTREAM_HOST_MEMORY" in str(exc) and {limit!r} in str(exc), exc
        else:
            raise SystemExit("accepted")
        """,
        env={"HALSTREAM_HOST_MEMORY": limit},
    )
    assert done.returncode == 0, done.stderr


def test_M1_the_limit_is_read_when_the_backend_is_opened(child: Child) -> None:
    done = child(
        """
        import os, halstream as hs
        from halstream import _memory as memory
        hs.Stream().close()
        hs.synchronize()  # a vendor's library may still end the stream
        os.environ["HALSTREAM_HOST_MEMORY"] = str(1 << 21)
        hs.use_backend("host")
        assert memory.memory_info() == (1 << 21, 1 << 21)
        """
    )
    assert done.returncode == 0, done.stderr


def test_M2_freed_memory_cannot_be_named() -> None:
    s, b, other = hs.Stream(), memory.DeviceMemory(1000), memory.DeviceMemory(1000)
    address = b.ptr
    b.free()
    b.free()  # of the object: again does nothing
    assert "freed" in repr(b)
    for call in (
        lambda: memory.copy(s, other.ptr, address, 4),
        lambda: memory.copy(s, address, other.ptr, 4),
        lambda: memory.fill(s, address, 0, 1, 4),
    ):
        with pytest.raises(hs.InvalidValueError):
            call()
    assert memory.lookup(address)[0] == memory.PAGEABLE
    s.synchronize(timeout=LIMIT)


def test_M2_pending_work_completes_before_memory_is_used_again(hold: Hold) -> None:
    s = hs.Stream()
    a = hs.empty(4096, np.uint8)
    back = hs.pinned_empty(4096, np.uint8)
    address, nbytes = a.ptr, a.nbytes
    gate = hold(s)
    a.fill(7, s)
    a.copy_to(back, s)
    del a
    gc.collect()
    others = [hs.zeros(4096, np.uint8) for _ in range(50)]
    assert address not in [o.ptr for o in others]
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert (back == 7).all()
    hs.synchronize()  # the blocks of `others` are free as soon as they are dropped
    before = memory.memory_info()[0]
    del others
    gc.collect()
    deadline = time.monotonic() + LIMIT
    while memory.memory_info()[0] <= before:  # a later call gives them back
        assert time.monotonic() < deadline
        memory.DeviceMemory(nbytes).free()


def test_M2_a_free_that_is_refused_can_be_repeated() -> None:
    s, b, wrong = hs.Stream(), memory.DeviceMemory(1000), []

    def inside() -> None:
        try:
            b.free()
        except hs.CallInHostFunctionError:
            wrong.append(b.ptr)

    s.call(inside)
    s.synchronize(timeout=LIMIT)
    assert wrong == [b.ptr] and b.ptr
    b.free()
    assert b.ptr == 0


def test_M2_the_backend_stays_while_memory_is_alive(child: Child) -> None:
    done = child(
        """
        import halstream as hs
        held = hs.pinned_empty(10)
        try:
            hs.use_backend("host")
        except hs.InvalidValueError as exc:
            assert "1 block(s) of memory" in str(exc), exc
        else:
            raise SystemExit("accepted")
        held[:] = 1  # still there
        del held
        assert hs.use_backend("host") == "host"
        assert hs.zeros(3).numpy().tolist() == [0, 0, 0]
        """
    )
    assert done.returncode == 0, done.stderr


def test_M2_collected_by_many_threads_at_once() -> None:
    before = memory.memory_info()[0]
    failed: list[BaseException] = []

    def work() -> None:
        try:
            s = hs.Stream(non_blocking=True)
            for _ in range(300):
                a = hs.empty(100, np.uint8)
                a.fill(1, s)
                b = hs.empty(100, np.uint8, stream=s)
                b.copy_from(a, s)
            s.synchronize(timeout=LIMIT)
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    gc.collect()
    memory.trim_pool()
    assert memory.memory_info()[0] >= before


@pytest.mark.usefixtures("settled_memory")
def test_M7_a_stream_gets_back_at_once_what_was_freed_on_it(hold: Hold) -> None:
    s = hs.Stream()
    hold(s)
    a = memory.PooledMemory(5000, s)
    address = a.ptr
    memory.fill(s, address, 1, 1, 5000)
    a.free()
    assert memory.PooledMemory(5000, s).ptr == address


@pytest.mark.usefixtures("settled_memory")
def test_M7_other_streams_get_it_when_the_free_is_reached(hold: Hold) -> None:
    s, other = hs.Stream(), hs.Stream()
    gate = hold(s)
    a = memory.PooledMemory(6000, s)
    address = a.ptr
    a.free()
    early = memory.PooledMemory(6000, other)
    assert early.ptr != address
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert memory.PooledMemory(6000, other).ptr == address


@pytest.mark.usefixtures("settled_memory")
def test_M7_a_free_on_the_default_stream_is_ordered_after_blocking_streams(hold: Hold) -> None:
    blocking, free = hs.Stream(), hs.Stream(non_blocking=True)
    a = memory.PooledMemory(7000, blocking)
    address = a.ptr
    gate = hold(blocking)
    memory.fill(blocking, address, 1, 1, 7000)
    a.free(hs.Device(0).default_stream)
    early = memory.PooledMemory(7000, free)
    assert early.ptr != address
    gate.open()
    hs.Device(0).default_stream.synchronize(timeout=LIMIT)
    assert memory.PooledMemory(7000, free).ptr == address


def test_M7_memory_of_another_device_is_not_freed_on_a_stream() -> None:
    s, far = hs.Stream(), hs.Stream(device=1)
    a = memory.PooledMemory(100, s)
    with pytest.raises(hs.InvalidValueError):
        a.free(far)
    a.free()
    with pytest.raises(hs.InvalidValueError):
        hs.empty(3, device=1, stream=s)


def test_M7_the_pool_reports_and_trims_what_it_keeps() -> None:
    s = hs.Stream(device=1)
    memory.trim_pool(1)
    start = memory.pool_stats(1)
    a, b = memory.PooledMemory(1 << 20, s), memory.PooledMemory(1 << 20, s)
    stats = memory.pool_stats(1)
    assert stats["used"] - start["used"] == 2 << 20
    assert stats["used_high"] >= stats["used"]
    a.free()
    b.free()
    s.synchronize(timeout=LIMIT)  # until then the memory stays with the stream
    stats = memory.pool_stats(1)
    assert stats["used"] == start["used"]
    assert stats["reserved"] >= 2 << 20
    memory.trim_pool(1, stats["reserved"] - (1 << 20))
    assert memory.pool_stats(1)["reserved"] <= stats["reserved"] - (1 << 20)
    memory.trim_pool(1)
    assert memory.pool_stats(1)["reserved"] == start["used"]


def test_M7_a_threshold_bounds_what_is_kept(child: Child) -> None:
    done = child(
        """
        import halstream as hs
        from halstream import _memory as memory
        s = hs.Stream()
        memory.set_pool_threshold(0)  # before anything was kept
        memory.PooledMemory(4096, s).free()
        hs.synchronize(0, timeout=10)
        assert memory.pool_stats()["reserved"] == 0
        memory.set_pool_threshold(4096)
        a, b = memory.PooledMemory(4096, s), memory.PooledMemory(4096, s)
        a.free()
        b.free()
        hs.synchronize(0, timeout=10)
        assert memory.pool_stats()["reserved"] == 4096
        assert memory.pool_stats()["threshold"] == 4096
        """
    )
    assert done.returncode == 0, done.stderr


def test_M10_pinned_memory_in_use_cannot_be_freed(hold: Hold) -> None:
    s, target = hs.Stream(), memory.DeviceMemory(1000)
    pinned = memory.PinnedMemory(1000)
    gate = hold(s)
    memory.copy(s, target.ptr, pinned.ptr, 1000)
    with pytest.raises(hs.NotReadyError, match=rf"a copy.*stream {s.index} of device 0"):
        pinned.free()
    assert pinned.ptr
    gate.open()
    s.synchronize(timeout=LIMIT)
    pinned.free()
    pinned.free()


def test_M10_registered_memory_is_pinned_until_it_is_unregistered(hold: Hold) -> None:
    s, target = hs.Stream(), hs.empty(100_000, np.uint8)
    host = np.full(100_000, 1, np.uint8)
    address = host.ctypes.data
    memory.register(address, host.nbytes)
    try:
        for start, n in ((address, 100_000), (address + 5, 1), (address + 99_999, 4)):
            with pytest.raises(hs.InvalidValueError):
                memory.register(start, n)
        gate = hold(s)
        target.copy_from(host, s)  # would not return if it were pageable
        host[:] = 2
        with pytest.raises(hs.NotReadyError, match="a copy"):
            memory.unregister(address)
        gate.open()
        s.synchronize(timeout=LIMIT)
        assert (target.numpy(s) == 2).all()
    finally:
        s.synchronize(timeout=LIMIT)
        memory.unregister(address)
    with pytest.raises(hs.InvalidValueError):
        memory.unregister(address)


def test_M10_collected_pinned_memory_waits_for_its_copies(hold: Hold) -> None:
    s, target = hs.Stream(), hs.zeros(4096, np.uint8)
    hs.Device(0).default_stream.synchronize(timeout=LIMIT)
    gate = hold(s)
    pinned = hs.pinned_empty(4096, np.uint8)
    pinned[:] = 5
    address = pinned.ctypes.data
    target.copy_from(pinned, s)
    del pinned
    gc.collect()
    # Others that want the place scribble into what they get.
    others = [hs.pinned_empty(4096, np.uint8) for _ in range(20)]
    for other in others:
        other[:] = 9
    assert address not in [other.ctypes.data for other in others]
    gate.open()
    assert (target.numpy(s) == 5).all()
