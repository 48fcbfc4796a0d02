"""Accesses by the host: what it reads and writes itself, on one thread and on several."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _native
from halstream._records import decode
from sanitize_help import LIMIT, Kit, Step, check, record, until, wait, write_a, write_b


def host(mode: str) -> Step:
    return lambda k: hs.host_access(k.pinned, mode)


def back(k: Kit) -> None:
    k.x.copy_to(k.pinned, k.a)


def up(k: Kit) -> None:
    k.x.copy_from(k.pinned, k.a)


HOST: dict[str, tuple[str, tuple[Step, ...]]] = {
    "read before the copy back is done": ("race", (back, host("r"))),
    "write before the copy back is done": ("race", (back, host("w"))),
    "read behind a synchronize": ("", (back, lambda k: k.a.synchronize(timeout=LIMIT), host("r"))),
    "read behind a synchronize of an event": (
        "",
        (back, record, lambda k: k.event.synchronize(timeout=LIMIT), host("r")),
    ),
    "synchronize before the copy": ("race", (lambda k: k.a.synchronize(timeout=LIMIT), back, host("r"))),
    "read of what a copy reads": ("", (up, host("r"))),
    "write of what a copy reads": ("race", (up, host("w"))),
    "both": ("race", (up, host("rw"))),
    "write, then the copy": ("", (host("w"), up)),
    "read behind a query": ("query", (back, lambda k: until(k.a.query), host("r"))),
    "numpy() of a stream nobody waits for": ("race", (write_a, lambda k: k.x.numpy(k.b))),
    "numpy() behind a wait": ("", (write_a, record, wait, lambda k: k.x.numpy(k.b))),
    "numpy() and then anything": ("", (write_a, lambda k: k.x.numpy(k.a), write_b)),
    "copy into pageable memory": ("", (write_a, lambda k: k.x.copy_to(np.empty(64, np.uint8), k.a), write_b)),
    "pageable source, changed at once": ("", (lambda k: pageable(k),)),
}


def pageable(k: Kit) -> None:
    source = np.zeros(64, np.uint8)
    k.x.copy_from(source, k.a)
    hs.host_access(source, "w")
    source[:] = 1


@pytest.mark.parametrize("name", HOST)
def test_the_host(backend: str, name: str) -> None:
    check(HOST[name][0], *HOST[name][1])


def test_V2_threads_whose_order_the_runtime_cannot_observe_are_listed_separately(backend: str) -> None:
    s = hs.Stream(non_blocking=True)
    staging = hs.pinned_empty(16, np.uint8)
    x = hs.empty(16, np.uint8)
    went: list[BaseException] = []

    def other() -> None:
        try:
            hs.host_access(staging, "w")
            done.append(1)
        except BaseException as exc:
            went.append(exc)

    done: list[int] = []
    with hs.sanitize() as report:
        thread = threading.Thread(target=other)
        x.fill(1, s)
        thread.start()
        until(lambda: bool(done or went))
        hs.host_access(staging, "w")  # behind what the list says, which the runtime does not see
        thread.join(LIMIT)
    assert not went
    (found,) = report.by_host_timing
    assert not report and "host threads" in found.text and not found.fix


def test_accesses_of_a_new_thread_are_ordered_after_earlier_ones(backend: str) -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x = hs.empty(16, np.uint8)

    def other() -> None:
        b.wait(event)
        x.fill(2, b)

    with hs.sanitize() as report:
        x.fill(1, a)
        event = a.record()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(LIMIT)
    assert not report.races
    b.synchronize(timeout=LIMIT)


@pytest.mark.parametrize("pending", [True, False])
@pytest.mark.parametrize("way", [pytest.param("the host", marks=pytest.mark.needs("host")), "a stream"])
def test_memory_that_another_library_takes_is_waited_for(backend: str, pending: bool, way: str) -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x = hs.empty(16, np.uint8)
    ran = threading.Event()
    with hs.sanitize() as report:
        if pending:
            a.delay(0.02)
        x.fill(1, a)
        if not pending:
            a.call(ran.set)
            assert ran.wait(LIMIT)  # done, but nothing of the runtime says so
        if way == "the host":
            np.from_dlpack(x)
        else:
            x.__dlpack__(stream=b)
        x.fill(2, b)
        b.synchronize(timeout=LIMIT)
    assert not report.all
    a.synchronize(timeout=LIMIT)


def test_without_a_listener_accesses_are_not_reported(backend: str) -> None:
    hs.host_access(bytearray(8), "w")
    hs.host_access(np.empty((0, 3)), "r")


def test_host_access_checks_what_it_is_given(backend: str) -> None:
    with pytest.raises(hs.InvalidValueError, match="'r', 'w' or 'rw', not 'x'"):
        hs.host_access(np.zeros(3), "x")
    with pytest.raises(hs.InvalidValueError, match="not 3"):
        hs.host_access(np.zeros(3), 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int is no buffer"):
        hs.host_access(3, "r")
    with pytest.raises(hs.InvalidValueError, match="read-only"):
        hs.host_access(b"abc", "w")
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(hs.InvalidValueError, match="read-only"):
        hs.host_access(frozen, "rw")
    hs.host_access(frozen, "r")


def test_host_access_waits_for_nothing(backend: str, hold: Callable[[hs.Stream], Any]) -> None:
    s = hs.Stream(non_blocking=True)
    x, pinned = hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    gate = hold(s)
    x.fill(1, s)
    x.copy_to(pinned, s)
    for buffer in (x, x[3:5], x._memory, pinned, pinned[::2]):
        hs.host_access(buffer, "rw")
        assert not s.query()
    gate.open()
    s.synchronize(timeout=LIMIT)


def test_host_access_in_a_function_is_refused(backend: str) -> None:
    s = hs.Stream()
    s.call_checked(hs.host_access, np.zeros(3), "r")
    with pytest.raises(hs.CallInHostFunctionError, match="may not call the runtime"):
        s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize(
    ("view", "start", "nbytes"),
    [
        (np.s_[:], 0, 80),
        (np.s_[::2], 0, 72),
        (np.s_[::-1], 0, 80),
        (np.s_[8:2:-2], 32, 40),
        (np.s_[3:4], 24, 8),
    ],
)
def test_host_access_of_a_view_is_from_its_lowest_to_its_highest_byte(
    backend: str, view: Any, start: int, nbytes: int
) -> None:
    whole = np.zeros(10)
    log = _native.trace_start()
    try:
        hs.host_access(whole[view], "rw")
        operations = decode(_native.trace_take(log))
    finally:
        _native.trace_stop(log)
    expected = [{"start": whole.ctypes.data + start, "size": nbytes}]
    assert [(o["kind"], o["reads"], o["writes"]) for o in operations] == [
        ("host read", expected, []),
        ("host write", [], expected),
    ]


def test_V2_accesses_ordered_only_by_a_query_are_listed_separately(backend: str) -> None:
    writer, reader = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    block = hs.zeros(16, np.uint8, stream=writer)
    writer.synchronize(timeout=LIMIT)
    with hs.sanitize(on="raise") as report:  # it does not raise: it may be meant so
        block.fill(1, writer)
        while not writer.query():
            pass
        block.fill(2, reader)
        reader.synchronize(timeout=LIMIT)
    (found,) = report.by_query
    assert not report.races and not report.by_host_timing
    assert "query" in found.text and __file__.rpartition("/")[2] in found.text
