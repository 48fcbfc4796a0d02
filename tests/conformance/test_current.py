"""The current device and stream: contexts, threads, tasks, exceptions."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0

pytestmark = pytest.mark.usefixtures("backend")


def in_thread(function: Callable[[], Any]) -> Any:
    """Return what a function gives on a new thread."""
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.append(function()))
    thread.start()
    thread.join(LIMIT)
    return out[0]


def test_T1_contexts_nest_and_restore() -> None:
    a, b = hs.Stream(), hs.Stream()
    default = hs.current_stream()
    assert default == hs.Device(0).default_stream
    with a:
        assert hs.current_stream() is a
        with b:
            assert hs.current_stream() is b
            with a:
                assert hs.current_stream() is a
            assert hs.current_stream() is b
        assert hs.current_stream() is a
    assert hs.current_stream() == default


def test_T1_contexts_restore_after_an_exception() -> None:
    a, b = hs.Stream(), hs.Stream()
    with a:
        with pytest.raises(ZeroDivisionError), b:
            1 / 0  # noqa: B018
        assert hs.current_stream() is a
        with pytest.raises(ZeroDivisionError), b:
            hs.use(hs.Stream())
            1 / 0  # noqa: B018
        assert hs.current_stream() is a
    assert hs.current_stream() == hs.Device(0).default_stream


def test_T1_a_context_of_another_device_restores_the_device() -> None:
    s = hs.Stream(device=1)
    with s:
        assert hs.current_device() == hs.Device(1)
        assert hs.current_stream() is s
        assert hs.current_stream(0) == hs.Device(0).default_stream
    assert hs.current_device() == hs.Device(0)
    assert hs.current_stream(1) == hs.Device(1).default_stream


def test_T2_use_in_a_context_ends_with_it() -> None:
    a, b, outside = hs.Stream(), hs.Stream(), hs.Stream()
    hs.use(outside)
    with a:
        hs.use(b)
        assert hs.current_stream() is b
        with a:
            assert hs.current_stream() is a
        assert hs.current_stream() is b
    assert hs.current_stream() is outside


def test_T2_use_outside_a_context_holds_for_the_thread_only() -> None:
    s = hs.Stream()
    hs.use(s)
    assert hs.current_stream() is s
    assert in_thread(hs.current_stream) == hs.Device(0).default_stream


def test_T3_a_new_thread_starts_at_the_default() -> None:
    with hs.Stream(device=1):
        assert in_thread(hs.current_device) == hs.Device(0)
        assert in_thread(lambda: hs.current_stream(1)) == hs.Device(1).default_stream
        # Also when the context is carried over.
        copy = contextvars.copy_context()
        assert in_thread(lambda: copy.run(hs.current_device)) == hs.Device(0)


def test_T3_to_thread_starts_at_the_default() -> None:
    async def main() -> tuple[Any, Any]:
        s = hs.Stream()
        with s:
            there = await asyncio.to_thread(hs.current_stream)
            return there, hs.current_stream() is s

    there, kept = asyncio.run(main())
    assert there == hs.Device(0).default_stream
    assert kept


def test_T3_a_context_left_on_another_thread_does_not_disturb() -> None:
    a, b = hs.Stream(), hs.Stream()

    def other() -> bool:
        with b:
            return hs.current_stream() is b

    with a:
        assert in_thread(other)
        assert hs.current_stream() is a


def test_T4_each_task_has_its_own_current_stream() -> None:
    streams = [hs.Stream() for _ in range(3)]

    async def worker(s: hs.Stream, entered: asyncio.Event, go_on: asyncio.Event) -> bool:
        with s:
            entered.set()
            await go_on.wait()
            return hs.current_stream() is s

    async def main() -> list[bool]:
        go_on = asyncio.Event()
        tasks = []
        for s in streams:
            entered = asyncio.Event()
            tasks.append(asyncio.create_task(worker(s, entered, go_on)))
            await entered.wait()
            # The others are inside their contexts; this task is not.
            assert hs.current_stream() == hs.Device(0).default_stream
        go_on.set()
        return await asyncio.wait_for(asyncio.gather(*tasks), LIMIT)

    assert asyncio.run(main()) == [True, True, True]
    assert hs.current_stream() == hs.Device(0).default_stream


def test_T4_a_task_starts_with_its_makers_stream_and_keeps_its_changes() -> None:
    a, b = hs.Stream(), hs.Stream()

    async def inner() -> bool:
        first = hs.current_stream() is a
        hs.use(b)
        return first and hs.current_stream() is b

    async def main() -> bool:
        with a:
            inherited = await asyncio.create_task(inner())
            return inherited and hs.current_stream() is a

    assert asyncio.run(main())


def test_T5_a_stream_is_current_on_its_own_device_only() -> None:
    s0, s1 = hs.Stream(device=0), hs.Stream(device=1)
    with s0, s1:
        assert hs.current_stream() is s1
        assert hs.current_stream(0) is s0
        with hs.Device(0):
            assert hs.current_stream() is s0


def test_T6_deleting_the_current_stream_is_safe() -> None:
    s = hs.Stream()
    index = s.index
    with s:
        del s
        gc.collect()
        current = hs.current_stream()
        assert current.index == index
        ran: list[int] = []
        current.call(ran.append, 1)
        current.synchronize(timeout=LIMIT)
        assert ran == [1]
    assert hs.current_stream() == hs.Device(0).default_stream


def test_T6_closing_the_current_stream_makes_its_use_an_error_and_leaving_works() -> None:
    s = hs.Stream()
    with s:
        s.close()
        with pytest.raises(hs.ClosedError):
            hs.current_stream().nop()
    assert hs.current_stream() == hs.Device(0).default_stream
    hs.current_stream().synchronize(timeout=LIMIT)
