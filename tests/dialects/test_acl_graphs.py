"""Captures of the ACL dialect: names that pyACL has not, with the codes of the C library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import halstream as hs
import pytest
from acl_help import LIMIT, device_0, finish, ok, streams
from halstream import acl
from halstream.acl import mdl, rt

pytestmark = [pytest.mark.dialect("acl"), pytest.mark.needs("graphs")]

__all__ = ["device_0"]

GLOBAL, THREAD_LOCAL, RELAXED = range(3)
SIZE = 64


@pytest.fixture
def block() -> Iterator[int]:
    """Device memory, all 0."""
    address = ok(rt.malloc(SIZE, acl.ACL_MEM_MALLOC_NORMAL_ONLY))
    ok(rt.memset(address, SIZE, 0, SIZE))
    yield address
    ok(rt.free(address))


def contents(block: int) -> set[int]:
    host = ok(rt.malloc_host(SIZE))
    try:
        ok(rt.memcpy(host, SIZE, block, SIZE, acl.ACL_MEMCPY_DEVICE_TO_HOST))
        return set(acl.util.ptr_to_bytes(host, SIZE))
    finally:
        ok(rt.free_host(host))


def captured(stream: int, enqueue: Callable[[], object], mode: int = RELAXED) -> int:
    """Capture what a function enqueues and return the instance."""
    ok(mdl.ri_capture_begin(stream, mode))
    enqueue()
    return int(ok(mdl.ri_capture_end(stream)))


def test_what_is_captured_runs_when_it_is_executed(block: int) -> None:
    (stream,) = streams(1)
    instance = captured(stream, lambda: ok(rt.memset_async(block, SIZE, 5, SIZE, stream)))
    finish(stream)
    assert contents(block) == {0}
    for execute in (
        lambda: mdl.ri_execute_async(instance, stream),
        lambda: mdl.ri_execute(instance, LIMIT),
    ):
        ok(rt.memset(block, SIZE, 1, SIZE))
        ok(execute())
        finish(stream)
        assert contents(block) == {5}
    ok(mdl.ri_debug_print(instance))
    ok(mdl.ri_destroy(instance))
    assert mdl.ri_destroy(instance) == 107017
    assert mdl.ri_execute_async(instance, stream) == 107017


def test_the_state_of_a_capture() -> None:
    (stream,) = streams(1)
    assert mdl.ri_capture_get_info(stream) == (acl.ACL_MODEL_RI_CAPTURE_STATUS_NONE, 0, 0)
    ok(mdl.ri_capture_begin(stream, RELAXED))
    assert mdl.ri_capture_get_info(stream) == (acl.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, 0, 0)
    assert rt.synchronize_stream(stream) == 107027
    assert mdl.ri_capture_get_info(stream) == (acl.ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED, 0, 0)
    assert mdl.ri_capture_end(stream) == (0, 507903)
    finish(stream)


def test_a_begin_that_is_refused() -> None:
    (stream,) = streams(1)
    assert mdl.ri_capture_begin(0, RELAXED) == 107031
    assert mdl.ri_capture_begin(stream, 3) == 107000
    assert mdl.ri_capture_begin(stream + 1000, RELAXED) != 0
    ok(mdl.ri_capture_begin(stream, RELAXED))
    assert mdl.ri_capture_begin(stream, RELAXED) == 107027
    ok(mdl.ri_destroy(ok(mdl.ri_capture_end(stream))))


def test_an_end_that_is_refused() -> None:
    one, two = streams(2)
    assert mdl.ri_capture_end(one) == (0, 107029)
    event = ok(rt.create_event_ex_with_flag(acl.ACL_EVENT_SYNC))
    ok(mdl.ri_capture_begin(one, RELAXED))
    ok(rt.record_event(event, one))
    ok(rt.stream_wait_event(two, event))
    ok(rt.record_event(event, two))
    assert rt.query_event_status(event)[-1] == 107028
    assert mdl.ri_capture_end(one) == (0, 507903)
    ok(mdl.ri_capture_begin(one, RELAXED))
    ok(rt.record_event(event, one))
    ok(rt.stream_wait_event(two, event))
    assert mdl.ri_capture_end(two) == (0, 107036)
    assert mdl.ri_capture_end(one) == (0, 507903)
    ok(rt.destroy_event(event))


@pytest.mark.parametrize(
    "create",
    [
        lambda: rt.create_event(),
        lambda: rt.create_event_with_flag(acl.ACL_EVENT_SYNC),
        lambda: rt.create_event_ex_with_flag(acl.ACL_EVENT_TIME_LINE),
    ],
    ids=["default", "older", "not waitable"],
)
def test_an_event_by_which_a_capture_cannot_order(create: Callable[[], tuple[int, int]]) -> None:
    (stream,) = streams(1)
    event = ok(create())
    ok(rt.record_event(event, stream))
    ok(rt.synchronize_stream(stream))
    ok(mdl.ri_capture_begin(stream, RELAXED))
    assert rt.record_event(event, stream) == 207000
    assert rt.stream_wait_event(stream, event) == 207000
    assert rt.reset_event(event, stream) == 207000
    ok(mdl.ri_destroy(ok(mdl.ri_capture_end(stream))))  # the capture goes on
    ok(rt.record_event(event, stream))
    ok(rt.destroy_event(event))


def test_a_stream_that_was_not_joined(block: int) -> None:
    one, two = streams(2)
    event = ok(rt.create_event_ex_with_flag(acl.ACL_EVENT_SYNC))
    ok(mdl.ri_capture_begin(one, RELAXED))
    ok(rt.record_event(event, one))
    ok(rt.stream_wait_event(two, event))
    ok(rt.memset_async(block, SIZE, 1, SIZE, two))
    assert mdl.ri_capture_end(one) == (0, 107025)
    finish(one)
    ok(rt.destroy_event(event))


def test_a_wait_for_work_outside_of_the_capture() -> None:
    one, two = streams(2)
    event = ok(rt.create_event_ex_with_flag(acl.ACL_EVENT_SYNC))
    ok(rt.record_event(event, two))
    ok(mdl.ri_capture_begin(one, RELAXED))
    assert rt.stream_wait_event(one, event) == 107024
    assert mdl.ri_capture_end(one) == (0, 507903)
    ok(rt.destroy_event(event))


def test_a_copy_of_pageable_memory_is_refused(block: int) -> None:
    (stream,) = streams(1)
    pageable = bytes(SIZE)
    source = acl.util.bytes_to_ptr(pageable)
    ok(mdl.ri_capture_begin(stream, RELAXED))
    assert rt.memcpy_async(block, SIZE, source, SIZE, acl.ACL_MEMCPY_HOST_TO_DEVICE, stream) == 107030
    assert mdl.ri_capture_end(stream) == (0, 507903)
    finish(stream)


@pytest.mark.parametrize("name", ["memcpy", "memcpy2d", "memset", "malloc", "malloc_host"])
def test_G2_an_unsafe_call_ends_a_global_capture(block: int, name: str) -> None:
    (stream,) = streams(1)
    other = ok(rt.malloc(SIZE, acl.ACL_MEM_MALLOC_NORMAL_ONLY))
    calls: dict[str, Callable[[], int]] = {
        "malloc": lambda: int(rt.malloc(SIZE, acl.ACL_MEM_MALLOC_NORMAL_ONLY)[-1]),
        "malloc_host": lambda: int(rt.malloc_host(SIZE)[-1]),
        "memcpy": lambda: rt.memcpy(block, SIZE, other, SIZE, acl.ACL_MEMCPY_DEVICE_TO_DEVICE),
        "memcpy2d": lambda: rt.memcpy2d(block, 8, other, 8, 8, 8, acl.ACL_MEMCPY_DEVICE_TO_DEVICE),
        "memset": lambda: rt.memset(block, SIZE, 1, SIZE),
    }
    ok(mdl.ri_capture_begin(stream, GLOBAL))
    assert calls[name]() == 107030
    assert mdl.ri_capture_end(stream) == (0, 507903)
    assert contents(block) == {0}
    finish(stream)
    ok(rt.free(other))


def test_only_its_thread_ends_a_capture_that_is_not_relaxed() -> None:
    (stream,) = streams(1)
    context = ok(rt.get_context())
    ok(mdl.ri_capture_begin(stream, THREAD_LOCAL))
    found: list[tuple[int, int]] = []

    def end() -> None:
        ok(rt.set_context(context))
        found.append(mdl.ri_capture_end(stream))

    thread = threading.Thread(target=end)
    thread.start()
    thread.join(LIMIT / 1000)
    assert found == [(0, 107038)]
    ok(mdl.ri_destroy(ok(mdl.ri_capture_end(stream))))


def test_the_mode_of_a_thread() -> None:
    assert mdl.ri_capture_thread_exchange_mode(RELAXED) == (GLOBAL, 0)
    assert mdl.ri_capture_thread_exchange_mode(GLOBAL) == (RELAXED, 0)
    assert mdl.ri_capture_thread_exchange_mode(7) == (0, 107000)


def test_groups_of_tasks_are_not_built() -> None:
    (stream,) = streams(1)
    assert mdl.ri_capture_task_grp_begin(stream) == 207000
    assert mdl.ri_capture_task_grp_end(stream) == (0, 207000)
    assert mdl.ri_capture_task_update_begin(stream, 1) == 207000
    assert mdl.ri_capture_task_update_end(stream) == 207000


def test_strict_mode_hides_them() -> None:
    hs.strict(True)
    try:
        with pytest.raises(AttributeError):
            mdl.ri_capture_begin  # noqa: B018
    finally:
        hs.strict(False)
