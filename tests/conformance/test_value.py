"""Values in memory that streams write and wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory as memory
from halstream._memory._stream_values import wait_value, write_value
from halstream._native._constants import CONDITION_ANY_BIT, CONDITION_AT_LEAST, CONDITION_EQUAL, CONDITION_MISSING_BIT
from halstream._schedules.block import schedule

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def cell() -> Any:
    """Return one pinned number, 0, and its address."""
    number = hs.pinned_empty(1, np.uint64)
    number[0] = 0
    return number, number.ctypes.data


def test_M19_a_value_is_written_in_the_order_of_the_stream(hold: Hold) -> None:
    (number, address), s = cell(), hs.Stream()
    gate = hold(s)
    write_value(s, address, 2**64 - 1)
    assert number[0] == 0, "the stream is held"
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert number[0] == 2**64 - 1


@pytest.mark.parametrize("where", ["pinned", "device"])
@pytest.mark.parametrize(
    ("condition", "wanted", "before", "after"),
    [
        (CONDITION_AT_LEAST, 5, 4, 6),
        (CONDITION_AT_LEAST, 2, 2**64 - 1, 3),
        (CONDITION_EQUAL, 5, 6, 5),
        (CONDITION_ANY_BIT, 6, 9, 2),
        (CONDITION_MISSING_BIT, 1, 2**64 - 2, 2**64 - 4),
    ],
)
def test_M19_a_stream_waits_for_a_value_that_another_writes(
    settle: Callable[[], None], where: str, condition: int, wanted: int, before: int, after: int
) -> None:
    writer, waiter = hs.Stream(), hs.Stream()
    ran: list[int] = []
    block: Any = memory.DeviceMemory(8) if where == "device" else cell()
    address = block.ptr if where == "device" else block[1]
    write_value(writer, address, before)
    writer.synchronize(timeout=LIMIT)
    wait_value(waiter, address, wanted, condition)
    waiter.call(ran.append, 1)
    settle()
    assert not waiter.query()
    assert ran == []
    write_value(writer, address, after)
    waiter.synchronize(timeout=LIMIT)
    assert ran == [1]
    writer.synchronize(timeout=LIMIT)


def test_M19_what_the_program_writes_is_noticed_while_it_waits(settle: Callable[[], None]) -> None:
    (number, address), s = cell(), hs.Stream()
    wait_value(s, address, 7, CONDITION_EQUAL)
    settle()
    assert not s.query()
    number[0] = 7
    s.synchronize(timeout=LIMIT)


def test_M19_what_another_thread_writes_ends_a_synchronize_that_has_begun() -> None:
    (number, address), s, about = cell(), hs.Stream(), threading.Event()

    def write() -> None:
        about.wait(LIMIT)
        number[0] = 7

    writer = threading.Thread(target=write)
    writer.start()
    wait_value(s, address, 7, CONDITION_EQUAL)
    about.set()
    s.synchronize(timeout=LIMIT)
    writer.join(LIMIT)
    assert not writer.is_alive()


@pytest.mark.needs("schedules")
@pytest.mark.parametrize("spec", ["fifo", "latest", "random 3", "pct 1 3 50", "starve 1"])
def test_M19_it_holds_under_schedules(spec: str) -> None:
    with schedule(spec):
        (number, address), a, b = cell(), hs.Stream(), hs.Stream()
        ran: list[str] = []
        wait_value(a, address, 1, CONDITION_AT_LEAST)
        a.call(ran.append, "a")
        b.call(ran.append, "b")
        write_value(b, address, 1)
        a.synchronize(timeout=LIMIT)
        assert ran == ["b", "a"]
        wait_value(a, address, 2, CONDITION_EQUAL)
        a.call(ran.append, "c")
        number[0] = 2  # by the host itself, between two calls
        a.synchronize(timeout=LIMIT)
        assert ran == ["b", "a", "c"]
        wait_value(a, address, 3, CONDITION_EQUAL)
        b.call(lambda: number.__setitem__(0, 3))
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)


@pytest.mark.needs("schedules")
def test_M19_the_device_continues_while_the_program_waits_outside_the_runtime() -> None:
    with schedule("latest"):
        (number, address), s, ran = cell(), hs.Stream(), threading.Event()
        wait_value(s, address, 1, CONDITION_EQUAL)
        s.call(ran.set)
        number[0] = 1
        assert ran.wait(LIMIT)


def test_M19_a_value_lies_in_device_or_pinned_memory_of_the_streams_device() -> None:
    s, block = hs.Stream(), memory.DeviceMemory(20)
    pageable = np.zeros(4, np.uint64)
    for address in (block.ptr + 4, block.ptr + 16, pageable.ctypes.data, 0):
        with pytest.raises(hs.InvalidValueError):
            write_value(s, address, 1)
        with pytest.raises(hs.InvalidValueError):
            wait_value(s, address, 1, CONDITION_EQUAL)
    for condition in (-1, 4, 2**40):
        with pytest.raises(hs.InvalidValueError, match="condition"):
            wait_value(s, block.ptr, 1, condition)
    for value in (-1, 2**64):
        with pytest.raises(hs.InvalidValueError):
            write_value(s, block.ptr, value)
    far = memory.DeviceMemory(8, 1)
    with pytest.raises(hs.WrongDeviceError):
        wait_value(s, far.ptr, 1, CONDITION_EQUAL)
    with pytest.raises(TypeError):
        write_value(None, block.ptr, 1)  # type: ignore[arg-type]


def test_L2_a_closed_stream_still_waits_for_a_value() -> None:
    (_, address), s, ran = cell(), hs.Stream(), threading.Event()
    wait_value(s, address, 1, CONDITION_EQUAL)
    s.call(ran.set)
    s.close()
    other = hs.Stream()
    write_value(other, address, 1)
    assert ran.wait(LIMIT)
    other.synchronize(timeout=LIMIT)
