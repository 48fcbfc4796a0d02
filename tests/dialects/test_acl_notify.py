"""Notifies, values in memory, information about failures, device facts, data buffers."""

from __future__ import annotations

import ctypes
import threading

import pytest
from acl_help import LIMIT, core, device_0, elsewhere, finish, ok, streams
from halstream import acl
from halstream.acl import _table, rt
from halstream.acl.rt import _notify

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]

GEQ, EQ, AND, NOR = range(4)


def test_a_record_lets_one_wait_pass(settle):
    notify = ok(rt.create_notify(0))
    setter, first, second = streams(3)
    for waiter in (first, second):
        assert rt.wait_and_reset_notify(notify, waiter, 0) == 0
    settle()
    assert [ok(rt.stream_query(s)) for s in (first, second)] == [1, 1]
    assert rt.record_notify(notify, setter) == 0
    finish(first)
    settle()
    assert ok(rt.stream_query(second)) == 1, "the first wait has cleared the notify"
    assert rt.record_notify(notify, setter) == 0
    finish(second)


def test_a_notify_is_set_until_a_wait_clears_it(settle):
    notify = ok(rt.create_notify(1))
    setter, waiter = streams(2)
    for _ in range(2):  # set twice is set
        ok(rt.record_notify(notify, setter))
    finish(setter)
    ok(rt.wait_and_reset_notify(notify, waiter, 0))
    finish(waiter)
    ok(rt.record_notify(notify, setter))
    finish(setter)
    ok(rt.notify_batch_reset([notify]))
    ok(rt.wait_and_reset_notify(notify, waiter, 0))
    settle()
    assert ok(rt.stream_query(waiter)) == 1, "the reset has cleared it"
    ok(rt.record_notify(notify, setter))
    finish(waiter)


def test_a_record_waits_for_the_work_before_it(hold, settle):
    notify = ok(rt.create_notify(0))
    setter, waiter = streams(2)
    gate = hold(core(setter))
    ok(rt.record_notify(notify, setter))
    ok(rt.wait_and_reset_notify(notify, waiter, 0))
    settle()
    assert ok(rt.stream_query(waiter)) == 1
    gate.open()
    finish(waiter)


def test_a_wait_for_a_notify_has_a_limit_in_seconds():
    notify = ok(rt.create_notify(0))
    (waiter,) = streams(1)
    ok(rt.wait_and_reset_notify(notify, waiter, 1))
    assert rt.synchronize_stream_with_timeout(waiter, LIMIT) == 107020
    with pytest.raises(TypeError):
        rt.wait_and_reset_notify(notify, waiter, None)


def test_codes_of_notifies(monkeypatch):
    (stream,) = streams(1)
    assert rt.create_notify(2) == (0, 107000)
    notify, event = ok(rt.create_notify(0)), ok(rt.create_event_ex_with_flag(1))
    assert ok(rt.get_notify_id(notify)) == notify & 0xFFFFFFFF
    assert rt.record_notify(0, stream) == 100000
    assert rt.record_notify(event, stream) == 107017
    assert rt.record_event(notify, stream) == 107017
    assert rt.notify_get_export_key(notify, 65, 0) == ("", 207000)
    assert rt.notify_import_by_key("key", 0) == (0, 207000)
    assert rt.notify_set_import_pid(notify, [1]) == 207000
    with pytest.raises(TypeError, match="args parse failed"):
        rt.notify_batch_reset(notify)
    monkeypatch.setattr(_notify, "MOST_NOTIFIES", 1)
    assert rt.create_notify(0) == (0, 207009)
    assert rt.destroy_notify(notify) == 0
    assert rt.destroy_notify(notify) == 107017
    assert notify not in _table.objects
    context = ok(rt.create_context(0))
    other = ok(rt.create_notify(0))
    assert rt.record_notify(other, stream) == 107003
    ok(rt.destroy_context(context))
    assert elsewhere(rt.create_notify, 0) == (0, 107002)


@pytest.fixture
def cell():
    pointer = ok(rt.malloc_host(64))
    ctypes.memset(pointer, 0, 64)
    yield pointer
    ok(rt.free_host(pointer))


@pytest.mark.parametrize(
    ("condition", "wanted", "before", "after"),
    [(GEQ, 5, 4, 6), (EQ, 5, 6, 5), (AND, 6, 9, 2), (NOR, 1, 2**64 - 2, 2**64 - 4)],
)
def test_a_stream_waits_for_a_value(cell, settle, condition, wanted, before, after):
    writer, waiter = streams(2)
    ok(rt.value_write(cell, before, 0, writer))
    finish(writer)
    ok(rt.value_wait(cell, wanted, condition, waiter))
    settle()
    assert ok(rt.stream_query(waiter)) == 1
    ok(rt.value_write(cell, after, 0, writer))
    finish(waiter)
    assert ctypes.c_uint64.from_address(cell).value == after
    ok(rt.value_wait(cell, wanted, condition, waiter))
    finish(waiter)


def test_a_value_of_device_memory_and_one_that_the_host_writes(cell):
    writer, waiter = streams(2)
    pointer = ok(rt.malloc(64, 0))
    ok(rt.memset(pointer, 64, 0, 64))
    ok(rt.value_wait(pointer, 1, EQ, waiter))
    ok(rt.value_write(pointer, 1, 0, writer))
    finish(waiter)
    finish(writer)
    ok(rt.value_wait(cell, 3, EQ, waiter))
    ctypes.c_uint64.from_address(cell).value = 3
    finish(waiter)
    ok(rt.free(pointer))


def test_a_value_is_read_when_the_wait_runs(cell, hold, settle):
    writer, waiter = streams(2)
    ok(rt.value_write(cell, 1, 0, writer))
    finish(writer)
    gate = hold(core(waiter))
    ok(rt.value_wait(cell, 1, EQ, waiter))
    ok(rt.value_write(cell, 2, 0, writer))
    finish(writer)
    gate.open()
    settle()
    assert ok(rt.stream_query(waiter)) == 1, "the value had changed before the stream reached the wait"
    ok(rt.value_write(cell, 1, 0, writer))
    finish(waiter)
    finish(writer)  # it may end later than the wait that saw its value


def test_codes_of_values(cell):
    (stream,) = streams(1)
    pageable = ctypes.addressof(ctypes.create_string_buffer(64))
    for call, flag in ((rt.value_write, 0), (rt.value_wait, EQ)):
        assert call(0, 1, flag, stream) == 100000
        assert call(pageable, 1, flag, stream) == 107000
        assert call(cell + 4, 1, flag, stream) == 107000
        assert call(cell, 1, 9, stream) == 107000
        assert call(cell, 1, flag, 12345) == 107017


def test_a_failure_is_reported_to_the_callback():
    event, (stream,) = ok(rt.create_event_with_flag(1)), streams(1)
    seen: list[tuple[int, ...]] = []

    def note(info: int) -> None:
        seen.append(
            (
                rt.get_error_code_from_exception_info(info),
                rt.get_device_id_from_exception_info(info),
                rt.get_thread_id_from_exception_info(info),
                rt.get_task_id_from_exception_info(info),
                rt.get_stream_id_from_exception_info(info),
            )
        )

    assert rt.set_exception_info_callback(note) == 0
    try:
        assert rt.synchronize_stream_with_timeout(stream, 0) == 107000
        ok(rt.stream_wait_event_with_timeout(stream, event, 1))
        assert rt.synchronize_stream_with_timeout(stream, LIMIT) == 107020
    finally:
        assert rt.set_exception_info_callback(None) == 0
    thread = threading.get_ident() & 0xFFFFFFFF
    assert seen == [(107020, 0, thread, 0xFFFFFFFF, 0xFFFFFFFF)]
    assert rt.get_error_code_from_exception_info(0) == 0xFFFFFFFF
    with pytest.raises(TypeError):
        rt.set_exception_info_callback(1)


def test_facts_of_a_device():
    assert ok(rt.get_device_info(0, acl.ACL_DEV_ATTR_AICPU_CORE_NUM)) > 0
    assert ok(rt.get_device_info(1, acl.ACL_DEV_ATTR_PHY_CHIP_ID)) == 1
    total = ok(rt.get_mem_info(1))[1]
    assert ok(rt.get_device_info(0, acl.ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE)) == total & 0xFFFFFFFF
    assert rt.get_device_info(0, acl.ACL_DEV_ATTR_CUBE_CORE_NUM) == (0, 0)
    assert rt.get_device_info(0, 77) == (0, 107000)
    assert rt.get_device_info(99, 1) == (0, 107001)
    rates = ok(rt.get_device_utilization_rate(0))
    assert set(rates) == {
        "cube_utilization", "vector_utilization", "aicpu_utilization", "memory_utilization", "utilization_extend",
    }  # fmt: skip
    assert rt.get_device_utilization_rate(99) == ({}, 107001)


def test_data_buffers():
    buffer = acl.create_data_buffer(0x1000, 2**33 + 5)
    assert (acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size_v2(buffer)) == (0x1000, 2**33 + 5)
    assert acl.get_data_buffer_size(buffer) == 5
    assert acl.update_data_buffer(buffer, 0x2000, 7) == 0
    assert (acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size(buffer)) == (0x2000, 7)
    assert acl.destroy_data_buffer(buffer) == 0
    assert acl.destroy_data_buffer(buffer) == acl.update_data_buffer(buffer, 1, 1) == 100000
    assert (acl.get_data_buffer_addr(buffer), acl.get_data_buffer_size(buffer)) == (0, 0)


def test_sizes_and_half_precision():
    kinds = acl.ACL_FLOAT, acl.ACL_FLOAT16, acl.ACL_INT64, acl.ACL_BF16
    assert [acl.data_type_size(kind) for kind in kinds] == [4, 2, 8, 2]
    assert acl.data_type_size(99) == 0
    for value in (0.0, 1.5, -2.0, 65504.0):
        assert acl.float16_to_float(acl.float_to_float16(value)) == value
    assert acl.float_to_float16(1e6) == 0x7C00
