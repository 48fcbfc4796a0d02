"""Memory, copies and fills by pointer, and the codes of what goes wrong."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from acl_help import ALLOCATE, LIMIT, core, device_0, elsewhere, finish, ok, streams
from halstream import acl
from halstream.acl import rt, util

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]

Hold = Callable[[Any], Any]
H2H, H2D, D2H, D2D, DEFAULT, BUFFERED = range(6)
SIZE = 4096
PATTERN = bytes(range(256)) * (SIZE // 256)


class Memory:
    """What a test allocated, all given back after it."""

    def __init__(self) -> None:
        self.device: list[int] = []
        self.host: list[int] = []

    def on_device(self, size: int = SIZE, contents: bytes | None = None) -> int:
        self.device.append(ok(rt.malloc(size, acl.ACL_MEM_MALLOC_HUGE_FIRST)))
        if contents is not None:
            ok(rt.memcpy(self.device[-1], size, util.bytes_to_ptr(contents), len(contents), H2D))
        return self.device[-1]

    def on_host(self, size: int = SIZE, contents: bytes = b"") -> int:
        self.host.append(ok(rt.malloc_host(size)))
        ctypes.memmove(self.host[-1], contents, len(contents))
        return self.host[-1]


@pytest.fixture
def memory(device_0: None) -> Iterator[Memory]:
    made = Memory()
    yield made
    for number in (0, 1):
        rt.device_task_abort(number, 0)
    rt.set_device(0)
    for pointer in made.device:
        rt.free(pointer)  # a test may have freed it
    for pointer in made.host:
        rt.free_host(pointer)


def contents(pointer: int, size: int = SIZE) -> bytes:
    """Return what is in device memory."""
    target = ctypes.create_string_buffer(size)
    ok(rt.memcpy(ctypes.addressof(target), size, pointer, size, D2H))
    return target.raw


# -- allocation ---------------------------------------------------------------


def test_memory_is_aligned_and_given_back(memory: Memory) -> None:
    for allocate in ALLOCATE:
        pointer = ok(allocate())
        assert pointer % 64 == 0
        assert rt.mem_flush(pointer, 10) == rt.mem_invalidate(pointer, 10) == 0
        assert rt.free(pointer) == 0
        assert rt.free(pointer) == 107000
    for allocate_host in (lambda: rt.malloc_host(100), lambda: rt.malloc_host_with_cfg(100, {})):
        pointer = ok(allocate_host())
        assert pointer % 64 == 0
        assert rt.free_host(pointer) == 0


def test_sizes_and_policies_that_cannot_be(memory: Memory) -> None:
    assert rt.malloc(0, 0) == (0, 100000)
    assert rt.malloc_host(0) == (0, 100000)
    assert rt.malloc(8, 8) == rt.malloc(8, -1) == (0, 107000)
    assert rt.malloc(1 << 60, 0) == (0, 207001)
    assert str(1 << 60) in (acl.get_recent_err_msg() or "")
    assert rt.malloc(-1, 0) == rt.malloc_host(-1) == (0, 207001)
    with pytest.raises(TypeError, match=r"acl\.rt\.malloc_with_cfg args parse failed"):
        rt.malloc_with_cfg(8, 0, None)


@pytest.mark.row(47)
def test_freeing_null_is_refused(memory: Memory) -> None:
    assert rt.free(0) == 100000
    assert rt.free_host(0) == 100000
    assert rt.free(-1) == rt.free_host(2**64 - 1) == 107000
    assert rt.host_unregister(-1) == 507911
    assert rt.free(2**64) == 100000  # modulo 2**64, as every pointer


def test_only_what_is_live_can_be_freed(memory: Memory) -> None:
    pointer, host = memory.on_device(), memory.on_host()
    assert rt.free(pointer + 64) == 107000
    assert rt.free(host) == rt.free_host(pointer) == 107000
    assert rt.free(pointer) == rt.free_host(host) == 0
    assert rt.free(pointer) == rt.free_host(host) == 107000
    assert "freed already" in (acl.get_recent_err_msg() or "")
    assert rt.memcpy(memory.on_device(), SIZE, pointer, SIZE, D2D) in (0, 107000)


def test_a_context_is_needed(memory: Memory) -> None:
    def calls() -> list[Any]:
        return [
            rt.malloc(8, 0),
            rt.malloc_host(8),
            rt.get_mem_info(1),
            rt.free(pointer),
            rt.memset(pointer, SIZE, 0, 8),
            rt.memcpy(pointer, SIZE, pointer + 8, 8, D2D),
            rt.memcpy_async(pointer, SIZE, pointer + 8, 8, D2D, 0),
        ]

    pointer = memory.on_device()
    assert elsewhere(calls) == [(0, 107002), (0, 107002), (0, 0, 107002), *[107002] * 4]


@pytest.mark.row(79)
def test_the_figures_are_a_tuple_of_three(memory: Memory) -> None:
    figures = rt.get_mem_info(1)
    assert len(figures) == 3
    free, total, ret = figures
    assert 0 < free <= total
    assert ret == 0
    assert rt.get_mem_info(18) == rt.get_mem_info(-1) == (0, 0, 107000)


def test_what_is_known_of_a_pointer(memory: Memory) -> None:
    pointer, host, mine = memory.on_device(), memory.on_host(), b"program's own"
    for address, place in (
        (pointer + 5, {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_DEVICE}),
        (host + 5, {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_HOST}),
        (util.bytes_to_ptr(mine), {"id": 0, "type": acl.ACL_MEM_LOCATION_TYPE_UNREGISTERED}),
    ):
        assert ok(rt.pointer_get_attributes(address))["location"] == place
    ok(rt.set_device(1))
    other = memory.on_device()
    assert ok(rt.pointer_get_attributes(other))["location"]["id"] == 1
    assert rt.pointer_get_attributes(0) == ({}, 100000)


def test_memory_of_the_program_can_be_pinned(memory: Memory, hold: Hold) -> None:
    (stream,) = streams(1)
    buffer = ctypes.create_string_buffer(PATTERN, SIZE)
    address, pointer = ctypes.addressof(buffer), memory.on_device()
    assert rt.host_unregister(address) == 507911
    assert rt.host_get_device_pointer(address, 0) == (0, 507911)
    assert ok(rt.host_register(address, SIZE, acl.ACL_HOST_REGISTER_MAPPED)) == address
    assert rt.host_register(address, SIZE, 0) == (0, 507910)
    assert ok(rt.host_get_device_pointer(address, 0)) == address
    gate = hold(core(stream))
    ok(rt.memcpy_async(pointer, SIZE, address, SIZE, H2D, stream))
    assert rt.host_unregister(address) == 207002
    assert "a copy" in (acl.get_recent_err_msg() or "")
    buffer[0:4] = b"late"  # pinned: read when the stream gets there
    gate.open()
    finish(stream)
    assert contents(pointer, 8) == b"late" + PATTERN[4:8]
    assert rt.host_unregister(address) == 0
    assert rt.host_register(address, SIZE, 4) == (0, 207000)
    assert rt.host_register_v2(address, SIZE, acl.ACL_HOST_REG_MAPPED) == 0
    assert rt.host_unregister(address) == 0
    assert rt.host_register_v2(address, SIZE, 0x8) == 207000


# -- copies -------------------------------------------------------------------


@pytest.mark.row(9, 81)
def test_there_and_back(memory: Memory) -> None:
    (stream,) = streams(1)
    host, pointer, back = memory.on_host(SIZE, PATTERN), memory.on_device(), memory.on_host()
    assert rt.memcpy_async(pointer, SIZE, host, SIZE, H2D, stream) == 0
    assert rt.memcpy_async(back, SIZE, pointer, SIZE, D2H, stream) == 0
    assert rt.synchronize_stream_with_timeout(stream, LIMIT) == 0
    assert util.ptr_to_bytes(back, SIZE) == PATTERN
    assert rt.memcpy_async_with_condition(back, SIZE, pointer + 1, 3, DEFAULT, stream) == 0
    finish(stream)
    assert util.ptr_to_bytes(back, 4) == PATTERN[1:4] + PATTERN[3:4]


@pytest.mark.row(10)
def test_a_pinned_source_is_read_late(memory: Memory, hold: Hold, settle: Any) -> None:
    (stream,) = streams(1)
    host, pointer = memory.on_host(SIZE, PATTERN), memory.on_device(SIZE, bytes(SIZE))
    gate = hold(core(stream))
    assert rt.memcpy_async(pointer, SIZE, host, SIZE, H2D, stream) == 0
    settle()
    assert contents(pointer) == bytes(SIZE)
    ctypes.memset(host, 7, SIZE)
    gate.open()
    finish(stream)
    assert contents(pointer) == bytes([7]) * SIZE


@pytest.mark.row(11)
@pytest.mark.parametrize("size", [SIZE, 256 << 10])
def test_a_pageable_source_can_be_changed_at_once(memory: Memory, size: int) -> None:
    (stream,) = streams(1)
    source = ctypes.create_string_buffer(b"\x05" * size, size)
    pointer = memory.on_device(size)
    assert rt.memcpy_async(pointer, size, ctypes.addressof(source), size, H2D, stream) == 0
    ctypes.memset(source, 6, size)
    finish(stream)
    assert contents(pointer, size) == b"\x05" * size


def test_a_buffered_copy_of_pinned_memory_takes_the_source(memory: Memory, hold: Hold) -> None:
    (stream,) = streams(1)
    host, pointer = memory.on_host(SIZE, PATTERN), memory.on_device()
    gate = hold(core(stream))
    assert rt.memcpy_async(pointer, SIZE, host, SIZE, BUFFERED, stream) == 0
    ctypes.memset(host, 0, SIZE)
    gate.open()
    finish(stream)
    assert contents(pointer) == PATTERN


@pytest.mark.needs("held-streams")
def test_the_synchronous_copy_waits_for_no_stream(memory: Memory, hold: Hold) -> None:
    (stream,) = streams(1)
    pointer = memory.on_device()
    gates = [hold(core(stream)), hold(core(0))]
    source = util.bytes_to_ptr(PATTERN)

    # Neither for the context's streams nor for its default stream.
    def copy() -> int:
        rt.set_device(0)
        return rt.memcpy(pointer, SIZE, source, SIZE, H2D) + rt.memset(pointer, 4, 1, 4)

    assert elsewhere(copy) == 0
    assert not any(gate.opened for gate in gates)
    assert contents(pointer) == b"\x01" * 4 + PATTERN[4:]


def test_the_synchronous_copy_takes_any_direction(memory: Memory) -> None:
    pointer, host = memory.on_device(), memory.on_host()
    for kind in range(6):
        ok(rt.memset(pointer, SIZE, 0, SIZE))
        assert rt.memcpy(pointer, SIZE, util.bytes_to_ptr(PATTERN), SIZE, kind) == 0
        assert contents(pointer) == PATTERN
    assert rt.memcpy(pointer, SIZE, pointer, SIZE, D2D) == 0
    assert rt.memcpy(host, SIZE, util.bytes_to_ptr(PATTERN), SIZE, H2H) == 0
    assert util.ptr_to_bytes(host, SIZE) == PATTERN
    assert rt.memcpy(pointer, SIZE, pointer + 8, 64, D2D) == 107000


@pytest.mark.row(12)
def test_more_bytes_than_the_target_takes(memory: Memory) -> None:
    (stream,) = streams(1)
    pointer, host = memory.on_device(SIZE, PATTERN), memory.on_host()
    assert rt.memcpy(pointer, 8, host, 9, H2D) == 107000
    assert rt.memcpy_async(pointer, 8, host, 9, H2D, stream) == 107000
    # What the program says of the target is not believed beyond the block.
    assert rt.memcpy(pointer, SIZE + 1, host, SIZE + 1, H2D) == 107000
    assert rt.memcpy_async(pointer + 1, SIZE, host, SIZE, H2D, stream) == 107000
    assert rt.memcpy_async(pointer, 2**64 - 1, host, 2**64 - 1, H2D, stream) == 107000
    finish(stream)
    assert contents(pointer) == PATTERN


@pytest.mark.row(13)
def test_no_bytes_are_always_copied(memory: Memory) -> None:
    assert rt.memcpy(0, 0, 0, 0, 9) == 0
    assert rt.memcpy_async(0, 0, 0, 0, -1, 0) == 0
    assert rt.memcpy2d(0, 0, 0, 0, 0, 3, H2D) == rt.memcpy2d_async(0, 0, 0, 0, 3, 0, H2D, 0) == 0


@pytest.mark.row(14)
def test_pointers_and_kinds_that_cannot_be(memory: Memory) -> None:
    (stream,) = streams(1)
    pointer, host = memory.on_device(), memory.on_host()
    for dst, src, kind in (
        (0, host, H2D),
        (pointer, 0, H2D),
        (pointer, host, 6),
        (pointer, host, 7),
        (pointer, host, -1),
    ):
        assert rt.memcpy(dst, SIZE, src, 8, kind) == 100000
        assert rt.memcpy_async(dst, SIZE, src, 8, kind, stream) == 100000
    for wrong in (D2H, D2D, H2H):
        assert rt.memcpy_async(pointer, SIZE, host, 8, wrong, stream) == 107000
    assert rt.memcpy_async(pointer, SIZE, pointer + 4, 8, D2D, stream) == 107000
    with pytest.raises(TypeError, match=r"acl\.rt\.memcpy_async args parse failed"):
        rt.memcpy_async(pointer, SIZE, host, 8, H2D)
    finish(stream)


@pytest.mark.row(15)
def test_a_stream_does_not_copy_on_the_host(memory: Memory) -> None:
    (stream,) = streams(1)
    host, source = memory.on_host(), util.bytes_to_ptr(PATTERN)
    for kind in (H2H, DEFAULT):
        assert rt.memcpy_async(host, SIZE, source, 8, kind, stream) == 207000


@pytest.mark.row(19, 46)
def test_a_stream_of_another_context(memory: Memory) -> None:
    (stream,) = streams(1)
    pointer, host = memory.on_device(), memory.on_host(SIZE, PATTERN)
    other = ok(rt.create_context(0))
    assert rt.memcpy_async(pointer, SIZE, host, SIZE, H2D, stream) == 107003
    assert rt.memset_async(pointer, SIZE, 0, SIZE, stream) == 107003
    assert rt.memcpy2d_async(pointer, 8, host, 8, 8, 2, H2D, stream) == 107003
    assert rt.synchronize_stream(stream) == 0
    # The memory is the device's, not the context's.
    assert rt.memcpy_async(pointer, SIZE, host, SIZE, H2D, 0) == 0
    finish(0)
    assert contents(pointer) == PATTERN
    ok(rt.destroy_context(other))
    ok(rt.set_device(0))


def test_between_devices(memory: Memory) -> None:
    ok(rt.set_device(1))
    there = memory.on_device()
    ok(rt.set_device(0))
    pointer = memory.on_device(SIZE, PATTERN)
    assert ok(rt.device_can_access_peer(0, 1)) == 1
    assert rt.device_enable_peer_access(1, 0) == 0
    assert rt.device_enable_peer_access(1, 1) == 107000
    (stream,) = streams(1)
    assert rt.memcpy_async(there, SIZE, pointer, SIZE, D2D, stream) == 0
    finish(stream)
    assert contents(there) == PATTERN
    assert rt.device_disable_peer_access(1) == 0
    assert rt.device_can_access_peer(0, 9) == (0, 107001)


def test_pinned_memory_stays_while_a_copy_is_pending(memory: Memory, hold: Hold) -> None:
    (stream,) = streams(1)
    host, pointer = memory.on_host(SIZE, PATTERN), memory.on_device()
    gate = hold(core(stream))
    ok(rt.memcpy_async(pointer, SIZE, host, SIZE, H2D, stream))
    assert rt.free_host(host) == 207002
    assert "a copy" in (acl.get_recent_err_msg() or "")
    gate.open()
    finish(stream)
    assert rt.free_host(host) == 0
    assert contents(pointer) == PATTERN


# -- fills and rows -----------------------------------------------------------


def test_fills(memory: Memory, hold: Hold) -> None:
    (stream,) = streams(1)
    pointer, host = memory.on_device(SIZE, PATTERN), memory.on_host()
    assert rt.memset(pointer, SIZE, -1, 4) == 0
    assert rt.memset(host, SIZE, 0x141, 4) == 0  # a byte of it
    assert util.ptr_to_bytes(host, 4) == b"AAAA"
    gate = hold(core(stream))
    assert rt.memset_async(pointer + 4, SIZE, 9, 4, stream) == 0
    assert contents(pointer, 8) == b"\xff" * 4 + PATTERN[4:8]
    gate.open()
    finish(stream)
    assert contents(pointer, 9) == b"\xff" * 4 + b"\x09" * 4 + PATTERN[8:9]
    for call, tail in ((rt.memset, ()), (rt.memset_async, (stream,))):
        assert call(pointer, 8, 0, 9, *tail) == 107000
        assert call(0, 8, 0, 8, *tail) == 100000
        assert call(util.bytes_to_ptr(PATTERN), SIZE, 0, 8, *tail) == 107000
        assert call(pointer, SIZE + 1, 0, SIZE + 1, *tail) == 107000


def test_a_stream_fills_pinned_memory_in_its_order(memory: Memory, hold) -> None:
    (stream,) = streams(1)
    host = memory.on_host(SIZE, PATTERN)
    gate = hold(core(stream))
    assert rt.memset_async(host, SIZE, 0x141, 4, stream) == 0
    assert util.ptr_to_bytes(host, 8) == PATTERN[:8]
    gate.open()
    finish(stream)
    assert util.ptr_to_bytes(host, 8) == b"AAAA" + PATTERN[4:8]
    assert rt.memset_async(host, SIZE + 1, 0, SIZE + 1, stream) == 107000


def test_rows(memory: Memory) -> None:
    (stream,) = streams(1)
    host, pointer = memory.on_host(SIZE, PATTERN), memory.on_device(SIZE, bytes(SIZE))
    assert rt.memcpy2d(pointer, 8, host, 16, 4, 3, H2D) == 0
    rows = b"".join(PATTERN[16 * i : 16 * i + 4] + bytes(4) for i in range(3))
    assert contents(pointer, 32) == rows + bytes(8)
    assert rt.memcpy2d_async(host, 4, pointer, 8, 4, 3, D2H, stream) == 0
    finish(stream)
    assert util.ptr_to_bytes(host, 12) == b"".join(PATTERN[16 * i : 16 * i + 4] for i in range(3))
    assert rt.memcpy2d(pointer, 3, host, 16, 4, 3, H2D) == 107000
    assert rt.memcpy2d(pointer, 16, host, 3, 4, 3, H2D) == 107000
    assert rt.memcpy2d(pointer, 8, host, 16, 4, 3, D2H) == 107000
    assert rt.memcpy2d(pointer, 8, host, 16, 4, 3, 7) == 100000
    assert rt.memcpy2d(pointer, 2**62, host, 2**62, 4, 5, H2D) == 107000
    assert rt.memcpy2d_async(pointer, 8, host, 16, 4, SIZE, H2D, stream) == 107000
