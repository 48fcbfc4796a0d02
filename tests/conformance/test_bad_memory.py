"""Wrong use of memory: a named error each, and the stream still works afterwards."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory as memory

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")

HUGE = [2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**80]


@pytest.fixture
def s() -> Iterator[hs.Stream]:
    """A stream that must do its work after whatever the test did to it."""
    stream = hs.Stream()
    yield stream
    a, ran = hs.empty(5000, np.uint8), []
    a.fill(9, stream)
    stream.call(ran.append, 1)
    assert (a.numpy(stream) == 9).all()
    assert ran == [1]
    stream.synchronize(timeout=LIMIT)


@pytest.fixture
def block() -> memory.DeviceMemory:
    return memory.DeviceMemory(1024)


@pytest.mark.parametrize("size", [0, -1, -(2**62)])
@pytest.mark.parametrize("make", ["device", "pooled", "pinned"])
def test_sizes_are_positive(s: hs.Stream, make: str, size: int) -> None:
    with pytest.raises((hs.InvalidValueError, OverflowError)):
        new(make, size, s)


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("make", ["device", "pooled", "pinned"])
def test_sizes_that_no_memory_has(s: hs.Stream, make: str, size: int) -> None:
    with pytest.raises(hs.OutOfMemoryError, match=str(size)):
        new(make, size, s)


def new(make: str, size: int, s: hs.Stream) -> object:
    if make == "device":
        return memory.DeviceMemory(size)
    return memory.PooledMemory(size, s) if make == "pooled" else memory.PinnedMemory(size)


@pytest.mark.parametrize("size", [1.5, "8", None, [8]])
def test_sizes_are_whole_numbers(s: hs.Stream, size: Any) -> None:
    for make in ("device", "pooled", "pinned"):
        with pytest.raises(TypeError):
            new(make, size, s)


@pytest.mark.parametrize("size", [-1, -(2**70), 1025, *HUGE])
def test_copies_and_fills_of_negative_and_huge_sizes(s: hs.Stream, block: Any, size: int) -> None:
    other = memory.DeviceMemory(1024)
    with pytest.raises(hs.InvalidValueError):
        memory.copy(s, block.ptr, other.ptr, size)
    with pytest.raises(hs.InvalidValueError):
        memory.copy_rows(s, block.ptr, 8, other.ptr, 8, 4, size)
    with pytest.raises(hs.InvalidValueError):
        memory.fill(s, block.ptr, 0, 1, size)


@pytest.mark.parametrize("address", [0, 1, 4096, -1, 2**64 - 1, 2**64, -(2**65)])
def test_addresses_of_nothing(s: hs.Stream, block: Any, address: int) -> None:
    for call in (
        lambda: memory.copy(s, address, block.ptr, 8),
        lambda: memory.copy(s, block.ptr, address, 8),
        lambda: memory.copy(s, block.ptr, address, 100_000),
        lambda: memory.fill(s, address, 0, 1, 8),
        lambda: memory.register(address, 8),
    ):
        with pytest.raises(hs.InvalidValueError):
            call()


def test_source_and_target_overlap(s: hs.Stream, block: Any) -> None:
    for dst, src in ((0, 0), (0, 99), (99, 0)):
        with pytest.raises(hs.InvalidValueError, match="overlap"):
            memory.copy(s, block.ptr + dst, block.ptr + src, 100)
    host = np.zeros(200, np.uint8)
    with pytest.raises(hs.InvalidValueError, match="overlap"):
        memory.copy(s, host.ctypes.data, host.ctypes.data + 50, 100)


def test_ranges_leave_their_block(s: hs.Stream, block: Any) -> None:
    host = np.zeros(4096, np.uint8)
    pinned = hs.pinned_empty(16, np.uint8)
    for dst, src, n in (
        (block.ptr, host.ctypes.data, 1025),
        (block.ptr + 1023, host.ctypes.data, 2),  # the next byte may be another block's
        (host.ctypes.data, block.ptr + 1, 1024),
        (block.ptr, pinned.ctypes.data, 17),
        (block.ptr - 1, host.ctypes.data, 2),
    ):
        with pytest.raises(hs.InvalidValueError):
            memory.copy(s, dst, src, n)
    assert (host == 0).all()


def test_freed_memory(s: hs.Stream, block: Any) -> None:
    address = block.ptr
    block.free()
    with pytest.raises(hs.InvalidValueError, match="freed"):
        memory.copy(s, address, np.zeros(8).ctypes.data, 8)
    with pytest.raises(hs.InvalidValueError, match="freed"):
        hs._native.mem_free(address)
    pooled = memory.PooledMemory(100, s)
    address = pooled.ptr
    pooled.free()
    with pytest.raises(hs.InvalidValueError):
        memory.fill(s, address, 0, 1, 1)
    with pytest.raises(hs.InvalidValueError):
        hs._native.mem_free_async(s._id, address)
    pinned = memory.PinnedMemory(100)
    address = pinned.ptr
    pinned.free()
    with pytest.raises(hs.InvalidValueError):
        hs._native.host_free(address)


def test_memory_of_others_is_not_freed(s: hs.Stream, block: Any) -> None:
    host = np.zeros(64, np.uint8)
    pinned = hs.pinned_empty(64, np.uint8)
    for address in (host.ctypes.data, pinned.ctypes.data, block.ptr + 256, 0):
        with pytest.raises(hs.InvalidValueError):
            hs._native.mem_free(address)
    for address in (host.ctypes.data, block.ptr, pinned.ctypes.data + 1):
        with pytest.raises(hs.InvalidValueError):
            hs._native.host_free(address)
    for address in (host.ctypes.data, block.ptr, pinned.ctypes.data):
        with pytest.raises(hs.InvalidValueError):
            hs._native.mem_free_async(s._id, address)
    host[:] = pinned[:] = 1


def test_read_only_targets(s: hs.Stream) -> None:
    a = hs.zeros(4, np.uint8, stream=s)
    frozen = np.zeros(4, np.uint8)
    frozen.flags.writeable = False
    for target in (frozen, b"1234", memoryview(b"1234")):
        with pytest.raises(hs.InvalidValueError, match="read-only"):
            a.copy_to(target, s)
    a.copy_from(b"1234", s)
    assert a.numpy(s).tobytes() == b"1234"
    assert frozen.tolist() == [0, 0, 0, 0]


def test_sources_and_targets_that_do_not_fit(s: hs.Stream) -> None:
    a = hs.zeros((4, 4), np.float32, stream=s)
    for wrong in (np.zeros(16), np.zeros(15, np.float32), np.zeros((8, 4), np.float32)[::2], b"12"):
        with pytest.raises(hs.InvalidValueError):
            a.copy_from(wrong, s)
        with pytest.raises(hs.InvalidValueError):
            a.copy_to(wrong, s)
    for no_buffer in (5, None, "text", object()):
        with pytest.raises(TypeError):
            a.copy_from(no_buffer, s)


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        (np.uint8, -1, hs.InvalidValueError),
        (np.uint8, 256, hs.InvalidValueError),
        (np.int16, np.int64(2**15), hs.InvalidValueError),
        (np.int32, 1.5, TypeError),
        (np.float32, 1j, TypeError),
        (np.int32, [1, 2], hs.InvalidValueError),
    ],
)
def test_fills_with_values_of_no_element(s: hs.Stream, dtype: Any, value: Any, error: Any) -> None:
    a = hs.zeros(4, dtype, stream=s)
    with pytest.raises(error):
        a.fill(value, s)
    assert a.numpy(s).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("shape", [-1, (2, -3), 1.5, "4", (2, None)])
def test_shapes_are_whole_numbers_from_zero(s: hs.Stream, shape: Any) -> None:
    for make in (hs.empty, hs.zeros, hs.pinned_empty):
        with pytest.raises((hs.InvalidValueError, TypeError)):
            make(shape)


def test_arrays_hold_no_python_objects(s: hs.Stream) -> None:
    for make in (hs.empty, hs.pinned_empty):
        with pytest.raises(hs.InvalidValueError, match="object"):
            make(4, object)


@pytest.mark.parametrize("shape", [(2,), [2], np.dtype("float32")])
def test_arrays_are_made_by_the_functions_for_it(block: Any, shape: Any) -> None:
    owner = None if isinstance(shape, tuple) else block
    with pytest.raises(TypeError, match="made by halstream"):
        hs.Array(owner, block.ptr, shape, np.dtype("float32"))  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [None, 5, "stream", object()])
def test_operands_that_are_no_stream(block: Any, stream: Any) -> None:
    with pytest.raises(TypeError):
        memory.copy(stream, block.ptr, block.ptr + 512, 4)
    with pytest.raises(TypeError):
        memory.fill(stream, block.ptr, 0, 1, 4)


def test_a_closed_stream_takes_no_work(block: Any) -> None:
    s = hs.Stream()
    s.close()
    for call in (
        lambda: memory.copy(s, block.ptr, block.ptr + 512, 4),
        lambda: memory.fill(s, block.ptr, 0, 1, 4),
        lambda: memory.PooledMemory(100, s),
        lambda: s.call_native(1),
    ):
        with pytest.raises(hs.ClosedError):
            call()


def test_memory_whose_stream_was_closed_is_given_back(block: Any) -> None:
    s = hs.Stream(device=1)
    used = memory.pool_stats(1)["used"]
    pooled = memory.PooledMemory(4096, s)
    s.close()
    with pytest.raises(hs.ClosedError):
        pooled.free()
    other = hs.Stream(device=1)
    pooled.free(other)
    assert memory.pool_stats(1)["used"] == used


def test_pinned_memory_is_not_freed_under_a_pending_copy(s: hs.Stream, block: Any, hold: Hold) -> None:
    pinned = memory.PinnedMemory(100)
    gate = hold(s)
    memory.copy(s, block.ptr, pinned.ptr, 100)
    with pytest.raises(hs.NotReadyError, match="a copy"):
        pinned.free()
    memory.fill(s, pinned.ptr, 1, 1, 100)
    with pytest.raises(hs.NotReadyError, match="a fill"):
        pinned.free()
    gate.open()
    s.synchronize(timeout=LIMIT)
    pinned.free()


def test_a_function_that_raises(s: hs.Stream, unraisable: list[Any]) -> None:
    a = hs.pinned_empty(4)
    a[:] = 0

    def fail(x: Any) -> None:
        x[:] = 5
        raise ValueError("after writing")

    s.call(fail, a)
    s.synchronize(timeout=LIMIT)
    assert (a == 5).all()
    assert [seen.type for seen in unraisable] == [ValueError]
    assert s.failures == 1
    s.call_checked(fail, a)
    with pytest.raises(ValueError, match="after writing"):
        s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize("function", [None, "puts", len, lambda p: p, 1.5, True, object()])
def test_native_functions_that_are_none(s: hs.Stream, function: Any) -> None:
    with pytest.raises(TypeError):
        s.call_native(function)


@pytest.mark.parametrize("function", [0, -1, 2**64, ctypes.CFUNCTYPE(None)(0)])
def test_native_functions_at_no_address(s: hs.Stream, function: Any) -> None:
    with pytest.raises(hs.InvalidValueError):
        s.call_native(function)


@pytest.mark.parametrize("argument", [1.5, "text", object(), [1]])
def test_arguments_of_native_functions_that_are_no_memory(s: hs.Stream, argument: Any) -> None:
    with pytest.raises(TypeError):
        s.call_native(1, argument)


def test_the_runtime_is_not_called_from_inside_a_function(s: hs.Stream, block: Any) -> None:
    failed: list[type] = []

    def inside() -> None:
        for call in (
            lambda: memory.DeviceMemory(100),
            lambda: memory.PinnedMemory(100),
            lambda: memory.PooledMemory(100, s),
            lambda: memory.copy(s, block.ptr, block.ptr + 512, 4),
            lambda: memory.fill(s, block.ptr, 0, 1, 4),
            lambda: s.call_native(1),
            block.free,
        ):
            try:
                call()
            except Exception as exc:
                failed.append(type(exc))

    s.call(inside)
    s.synchronize(timeout=LIMIT)
    assert failed == [hs.CallInHostFunctionError] * 7
    assert block.ptr


@pytest.mark.parametrize("access", ["read", "none"])
@pytest.mark.parametrize("pages", [3, 65])
def test_M3_every_page_of_program_memory_is_checked(
    s: hs.Stream, access: str, pages: int, child: Callable[..., Any]
) -> None:
    # In a child: an unchecked page ends the process.
    done = child(
        f"""
        import ctypes, mmap
        import halstream as hs
        from halstream import _memory as memory

        libc, page, pages = ctypes.CDLL(None), mmap.PAGESIZE, {pages}
        region = mmap.mmap(-1, pages * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(region))
        middle = ctypes.c_void_p(start + pages // 2 * page)
        assert libc.mprotect(middle, page, {int(access == "read")}) == 0
        s, block = hs.Stream(), memory.DeviceMemory(pages * page)

        def refused(dst, src):
            try:
                memory.copy(s, dst, src, pages * page)
            except hs.InvalidValueError as exc:
                assert "memory of this process" in str(exc), exc
                return True
            return False

        assert refused(start, block.ptr)
        assert refused(block.ptr, start) is {access == "none"}
        s.synchronize(timeout=10)
        assert libc.mprotect(middle, page, 3) == 0
        assert not refused(start, block.ptr)
        """
    )
    assert done.returncode == 0, done.stderr
