"""Awaiting streams and events in the event loops of asyncio and trio."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import halstream as hs
import pytest
import trio
from halstream import _native
from halstream._core import _awaiting

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


class Asyncio:
    """asyncio, with the names that the tests use."""

    turn = staticmethod(functools.partial(asyncio.sleep, 0))

    @staticmethod
    def run(main: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            await asyncio.wait_for(main(), LIMIT)

        asyncio.run(limited())

    @staticmethod
    async def together(*functions: Callable[[], Awaitable[None]]) -> None:
        await asyncio.gather(*[function() for function in functions])

    @staticmethod
    async def limited(seconds: float, what: Any) -> bool:
        try:
            await asyncio.wait_for(until(what), seconds)
        except asyncio.TimeoutError:
            return False
        return True


class Trio:
    """trio, likewise."""

    turn = staticmethod(trio.lowlevel.checkpoint)

    @staticmethod
    def run(main: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            with trio.fail_after(LIMIT):
                await main()

        trio.run(limited)

    @staticmethod
    async def together(*functions: Callable[[], Awaitable[None]]) -> None:
        async with trio.open_nursery() as nursery:
            for function in functions:
                nursery.start_soon(function)

    @staticmethod
    async def limited(seconds: float, what: Any) -> bool:
        with trio.move_on_after(seconds) as scope:
            await what
        return not scope.cancelled_caught


@pytest.fixture(params=[Asyncio, Trio], ids=["asyncio", "trio"])
def lib(request: pytest.FixtureRequest) -> Any:
    return request.param


async def until(what: Any) -> None:
    await what


def waits() -> int:
    """Return how many waits the calling loop has in the extension."""
    return int(_native.notices_waiting(_awaiting._line().id))


def test_Z1_what_is_done_does_not_suspend() -> None:
    s = hs.Stream()
    e = s.record()
    s.synchronize(timeout=LIMIT)
    for what in (s, e, hs.Event()):
        with pytest.raises(StopIteration):  # and so no loop is needed
            next(what.__await__())


def test_Z1_a_wait_is_for_the_record_at_its_begin(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        # Work of the legacy stream that is done does not matter; behind pending work a vendor's wait is for
        # later work as well.
        hs.Device(0).default_stream.nop()
        hs.synchronize()
        s, ended = hs.Stream(), []
        first, e = hold(s), s.record()

        async def wait(what: Any, name: str) -> None:
            await what
            ended.append((name, e.query()))

        async def again() -> None:
            await lib.turn()
            second = hold(s)
            e.record(s)
            first.open()
            while len(ended) < 2:  # a wait that had moved would end by the limit only
                await lib.turn()
            second.open()

        await lib.together(functools.partial(wait, e, "event"), functools.partial(wait, s, "stream"), again)
        assert sorted(ended) == [("event", False), ("stream", False)]

    lib.run(main)


def test_Z2_every_task_goes_on_that_waits_for_one_of_many(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        streams = [hs.Stream() for _ in range(2)]
        gates = [hold(s) for s in streams]
        events = [s.record() for s in streams for _ in range(50)]
        ended = []

        async def wait(number: int) -> None:
            await events[number]
            ended.append(number)

        async def open_gates() -> None:
            for gate in gates:
                await lib.turn()
                gate.open()

        await lib.together(*[functools.partial(wait, n) for n in range(100)], open_gates)
        assert sorted(ended) == list(range(100))
        assert waits() == 0

    lib.run(main)


def test_Z3_an_error_of_the_stream_is_raised_once_by_await(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        s = hs.Stream()
        for pending in (True, False):
            gate = hold(s)
            s.call_checked(lambda: 1 / 0)
            if not pending:
                gate.open()
                while not s.record().query():
                    await lib.turn()

            async def open_gate(gate: Any = gate) -> None:
                await lib.turn()
                gate.open()

            async def wait() -> None:
                with pytest.raises(ZeroDivisionError):
                    await s

            await lib.together(wait, open_gate)
            await s  # reported already
            assert waits() == 0

    lib.run(main)


def test_Z3_an_await_counts_as_a_synchronize() -> None:
    source, target = hs.pinned_empty(8, "u1"), hs.empty(8, "u1")

    async def main(wait: bool) -> None:
        s = hs.Stream()
        release = threading.Event()
        s.call(release.wait, LIMIT)
        target.copy_from(source, stream=s)
        asyncio.get_running_loop().call_soon(release.set)
        e = s.record()
        if wait:
            await e
        hs.host_access(source, "w")
        release.set()
        await s

    found = []
    for wait in (True, False):
        with hs.sanitize(on="collect") as report:
            asyncio.run(main(wait))
        found.append(len(report))
    assert found == [0, 1]


def test_Z4_a_time_limit_gives_the_wait_up_and_the_work_goes_on(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        s, ran = hs.Stream(), []
        gate = hold(s)
        s.call(ran.append, 1)
        for what in (s, s.record()):
            assert not await lib.limited(0.02, what)
            assert waits() == 0
        assert ran == []
        gate.open()
        assert await lib.limited(LIMIT, s)
        assert ran == [1]

    lib.run(main)


def test_Z4_a_task_cancelled_when_its_notice_has_come_leaves_nothing(hold: Hold) -> None:
    async def main() -> None:
        s = hs.Stream()
        gate = hold(s)
        task = asyncio.ensure_future(until(s))
        await asyncio.sleep(0)
        gate.open()
        s.synchronize(timeout=LIMIT)  # the loop has not looked yet
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await s.record()
        assert waits() == 0

    Asyncio.run(main)


def test_Z5_other_tasks_run_while_one_waits(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        s, order = hs.Stream(), []
        gate = hold(s)

        async def wait() -> None:
            await s
            order.append("stream")

        async def other() -> None:
            for n in range(3):
                order.append(n)
                await lib.turn()
            gate.open()

        await lib.together(wait, other)
        assert order == [0, 1, 2, "stream"]

    lib.run(main)


def test_Z5_no_thread_waits(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        s = hs.Stream()
        gate = hold(s)
        await hs.Stream()
        before = threading.active_count()
        seen = []

        async def look() -> None:
            await lib.turn()
            seen.append((threading.active_count(), waits()))
            gate.open()

        await lib.together(*[functools.partial(until, s) for _ in range(20)], look)
        [(threads, pending)] = seen
        assert pending == 20
        assert threads <= before + 1, "one thread that runs functions may have begun meanwhile"

    lib.run(main)


def test_Z5_several_loops_in_several_threads(lib: Any, hold: Hold) -> None:
    s, failed = hs.Stream(), []
    gate = hold(s)
    waiting = threading.Barrier(4)

    def work() -> None:
        async def main() -> None:
            async def other() -> None:
                await lib.turn()
                waiting.wait(LIMIT)

            await lib.together(functools.partial(until, s), other)
            assert s.query()

        try:
            lib.run(main)
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    waiting.wait(LIMIT)
    assert all(thread.is_alive() for thread in threads)
    gate.open()
    for thread in threads:
        thread.join(LIMIT)
    assert failed == []


def test_Z5_one_loop_after_another(lib: Any, hold: Hold) -> None:
    for _ in range(3):

        async def main() -> None:
            s = hs.Stream()
            gate = hold(s)

            async def open_gate() -> None:
                await lib.turn()
                gate.open()

            await lib.together(functools.partial(until, s), open_gate)

        lib.run(main)


def test_Z5_a_loop_that_is_closed_gives_its_waits_up(hold: Hold) -> None:
    s = hs.Stream()
    gate = hold(s)
    loop = asyncio.new_event_loop()
    found = []

    async def main() -> None:
        found.append(_awaiting._line().id)
        await s

    task = loop.create_task(main())
    loop.call_later(0, loop.stop)
    loop.run_forever()
    loop.set_exception_handler(lambda *_: None)  # of the task that is destroyed pending
    loop.close()
    del loop, task
    gc.collect()
    hs._core.drain()
    with pytest.raises(hs.HalError):
        _native.notices_waiting(found[0])
    gate.open()
    s.synchronize(timeout=LIMIT)


def test_Z5_a_task_needs_a_loop(hold: Hold) -> None:
    s = hs.Stream()
    gate = hold(s)
    with pytest.raises(RuntimeError, match="asyncio or trio"):
        until(s).send(None)
    gate.open()


def test_Z5_a_closed_event_is_refused(lib: Any) -> None:
    async def main() -> None:
        e = hs.Event()
        e.close()
        with pytest.raises(hs.ClosedError):
            await e

    lib.run(main)


def test_Z5_streams_and_events_of_dialects_are_awaited(lib: Any, hold: Hold) -> None:
    from halstream.cupy import cuda as cupy_cuda
    from halstream.mindspore import hal as mindspore_hal
    from halstream.paddle import device as paddle_device
    from halstream.torch import cuda as torch_cuda

    async def main() -> None:
        streams = (torch_cuda.Stream(), paddle_device.Stream(), mindspore_hal.Stream(), cupy_cuda.Stream())
        gates = [hold(s) for s in streams]

        async def open_gates() -> None:
            await lib.turn()
            for gate in gates:
                gate.open()

        events = [hs.Stream.record(s) for s in streams]
        await lib.together(*[functools.partial(until, what) for what in (*streams, *events)], open_gates)

    lib.run(main)


def test_Z5_strict_mode_hides_it() -> None:
    from halstream.torch import cuda

    s = cuda.Stream()
    hs.strict()
    try:
        with pytest.raises((TypeError, AttributeError)):
            asyncio.run(until(s))
        asyncio.run(until(hs.Stream()))  # the core's own class
    finally:
        hs.strict(False)
    asyncio.run(until(s))


@pytest.mark.needs("schedules")
def test_Z5_tasks_move_a_deterministic_device() -> None:
    from halstream.testing import schedule

    orders = []
    for _ in range(2):
        order: list[int] = []

        async def main(order: list[int] = order) -> None:
            async def work(number: int) -> None:
                s = hs.Stream()
                for _ in range(3):
                    s.call(order.append, number)
                    await s

            await asyncio.gather(*[work(number) for number in range(3)])

        with schedule("random 7"):
            asyncio.run(main())
        assert sorted(order) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        orders.append(order)
    assert orders[0] == orders[1]


def test_Z6_async_with_makes_the_stream_current_in_its_task_and_waits(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        s, outside, ran = hs.Stream(), hs.current_stream(), []
        gate = hold(s)

        async def work() -> None:
            async with s as entered:
                assert entered is s
                assert hs.current_stream() is s
                s.call(ran.append, 1)
                await lib.turn()
            assert hs.current_stream() == outside
            assert ran == [1]

        async def other() -> None:
            await lib.turn()
            assert hs.current_stream() == outside
            assert ran == []
            gate.open()

        await lib.together(work, other)

    lib.run(main)


def test_Z6_after_an_exception_async_with_does_not_wait(lib: Any, hold: Hold) -> None:
    async def main() -> None:
        s, outside = hs.Stream(), hs.current_stream()
        gate = hold(s)
        with pytest.raises(KeyError):
            async with s:
                raise KeyError
        assert hs.current_stream() == outside
        assert not s.query()
        gate.open()

    lib.run(main)


@pytest.mark.needs("stalls")
def test_W3_tasks_that_await_what_can_never_come_are_reported(child: Callable[..., Any]) -> None:
    done = child(
        "import asyncio, halstream as hs\n"
        "from halstream.testing import Gate\n"
        "async def main():\n"
        "    s = hs.Stream()\n"
        "    gate = Gate(s)\n"
        "    await s\n"
        "asyncio.run(main())\n"
    )
    assert done.returncode != 0
    assert "waits in an event loop" in done.stderr
    assert "nobody is left who could open it" in done.stderr
