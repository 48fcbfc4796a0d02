"""W1 to W3 in event loops: asyncio and trio, on a device that moves by itself and under a schedule."""

from __future__ import annotations

import importlib.util
import subprocess
import textwrap
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.needs("stalls")

Child = Callable[..., subprocess.CompletedProcess[str]]

needs_trio = pytest.mark.skipif(importlib.util.find_spec("trio") is None, reason="trio is not installed")
LOOPS = ("asyncio", pytest.param("trio", marks=needs_trio))
SCHEDULES = ("", pytest.param("fifo", marks=pytest.mark.needs("schedules")))

#: Seconds in which a program ends; one that hangs is ended then.
LIMIT = 30.0

#: Begins each program. What may end a wait comes after AFTER seconds, in which a stall would be found several times.
START = """
import contextlib, os, signal, subprocess, sys, threading, time
import asyncio
import halstream as hs
from halstream.testing import Gate, schedule

AFTER = 2.0
s = hs.Stream()


def run(main):
    with schedule("{schedule}") if "{schedule}" else contextlib.nullcontext():
        if "{lib}" == "trio":
            trio.run(main)
        else:
            asyncio.run(main())


def later(code):
    return subprocess.Popen([sys.executable, "-c", f"import os, signal, time; time.sleep({{AFTER}}); {{code}}"])
"""

TRIO = """
import trio
sleep, turn = trio.sleep, trio.lowlevel.checkpoint
readable = trio.lowlevel.wait_readable


async def both(*functions):
    async with trio.open_nursery() as nursery:
        for function in functions:
            nursery.start_soon(function)


async def limited(seconds, wait):
    with trio.move_on_after(seconds):
        await wait


async def signalled():
    with trio.open_signal_receiver(signal.SIGUSR1) as signals:
        started.set()
        async for _ in signals:
            return
"""

ASYNCIO = """
sleep = asyncio.sleep


async def turn():
    await asyncio.sleep(0)


async def readable(file):
    come = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_reader(file, come.set_result, None)
    await come
    asyncio.get_running_loop().remove_reader(file)


async def both(*functions):
    await asyncio.gather(*[function() for function in functions])


async def limited(seconds, wait):
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(wait, seconds)


async def signalled():
    come = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, come.set)
    started.set()
    await come.wait()
    asyncio.get_running_loop().remove_signal_handler(signal.SIGUSR1)
"""


@pytest.fixture(params=LOOPS)
def lib(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=SCHEDULES, ids=["by itself", "fifo"])
def loop(request: pytest.FixtureRequest, child: Child, lib: str) -> Child:
    """Return a function that runs a program in a kind of loop, under a schedule or none."""

    def run(source: str) -> subprocess.CompletedProcess[str]:
        start = START.format(lib=lib, schedule=request.param) + (TRIO if lib == "trio" else ASYNCIO)
        return child(start + textwrap.dedent(source), timeout=LIMIT)

    return run


def test_W3_tasks_that_wait_for_what_can_never_come_end_with_an_error(loop: Child) -> None:
    done = loop(
        """
        async def main():
            stuck = threading.Event()
            s.call(stuck.wait)
            await s  # here

        run(main)
        """
    )
    assert done.returncode == 1, done.stderr
    assert "StallError: this wait can never end" in done.stderr
    assert "waits in Event.wait()" in done.stderr


def test_W3_the_error_is_raised_in_one_task_and_ends_the_others(loop: Child) -> None:
    done = loop(
        """
        async def waits():
            try:
                await s
            finally:
                print("left")

        async def main():
            gate = Gate(s)
            await both(waits, waits)

        try:
            run(main)
        except BaseException as exc:
            found = exc.exceptions[0] if hasattr(exc, "exceptions") else exc
            assert isinstance(found, hs.StallError), found
            print("raised")
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["left", "left", "raised"]


def test_W3_a_task_may_end_the_stall_that_it_was_told_of(loop: Child) -> None:
    done = loop(
        """
        async def main():
            gate = Gate(s)
            try:
                await s
            except hs.StallError:
                gate.open()
            await s
            print("done")

        run(main)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_W3_a_loop_of_asyncio_that_waits_for_what_only_the_device_gives(child: Child) -> None:
    done = child(
        START.format(lib="asyncio", schedule="")
        + textwrap.dedent(
            """
            async def main():
                gate, event, loop = Gate(s), asyncio.Event(), asyncio.get_running_loop()
                s.call(loop.call_soon_threadsafe, event.set)
                try:
                    await asyncio.gather(event.wait())
                finally:
                    print("left")

            asyncio.run(main())
            """
        ),
        timeout=LIMIT,
    )
    assert done.returncode == 1
    assert done.stdout == "left\n"
    assert "StallError: this wait can never end" in done.stderr


@needs_trio
def test_W3_a_run_of_trio_that_waits_for_what_only_the_device_gives(child: Child) -> None:
    done = child(
        START.format(lib="trio", schedule="")
        + TRIO
        + textwrap.dedent(
            """
            async def main():
                gate, event, token = Gate(s), trio.Event(), trio.lowlevel.current_trio_token()
                s.call(token.run_sync_soon, event.set)
                try:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(event.wait)
                finally:
                    print("left")

            run(main)
            """
        ),
        timeout=LIMIT,
    )
    assert done.returncode == 1
    assert done.stdout == "left\n"
    assert "StallError: this wait can never end" in done.stderr


@pytest.mark.needs("schedules")
@pytest.mark.parametrize("options", [("--stream-schedules=3",), ("--stream-sanitize",), ()], ids=str)
def test_W3_a_test_with_a_loop_that_hangs_fails(pytester: pytest.Pytester, lib: str, options: tuple[str, ...]) -> None:
    run = "trio.run(main)" if lib == "trio" else "asyncio.run(main())"
    pytester.makepyfile(
        f"""
        import threading, {lib}, halstream as hs

        def test_hangs():
            async def main():
                s, stuck = hs.Stream(), threading.Event()
                s.call(stuck.wait)
                await s
            {run}
        """
    )
    result = pytester.runpytest_subprocess(*options, timeout=LIMIT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*StallError: this wait can never end*"])


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param("await sleep(AFTER); gate.open()", id="a timer"),
        pytest.param("for _ in range(20): await sleep(AFTER / 20)\n    gate.open()", id="many timers"),
        pytest.param(
            "end = time.monotonic() + AFTER\n    while time.monotonic() < end: await turn()\n    gate.open()",
            id="a task that takes turns",
        ),
        pytest.param(
            "thread = threading.Thread(target=lambda: (time.sleep(AFTER), gate.open()))\n    thread.start()",
            id="a thread",
        ),
        pytest.param(
            "read, write = os.pipe()\n    other = subprocess.Popen([sys.executable, '-c', 'import os, sys, time; "
            "time.sleep(float(sys.argv[2])); os.write(int(sys.argv[1]), bytes(1))', str(write), str(AFTER)], "
            "pass_fds=[write])\n    await readable(read); gate.open(); other.wait(20)",
            id="a file",
        ),
        pytest.param(
            "global started; started = threading.Event(); "
            "other = later(f'os.kill({os.getpid()}, {int(signal.SIGUSR1)})')\n"
            "    await signalled(); gate.open(); other.wait(20)",
            id="a signal",
        ),
        pytest.param("time.sleep(AFTER); gate.open()", id="a task that is slow"),
    ],
)
def test_W2_a_loop_that_something_could_wake_is_left_alone(loop: Child, ends: str) -> None:
    done = loop(
        f"""
async def opens():
    {ends}

async def waits():
    await s

async def main():
    global gate
    gate = Gate(s)
    await both(waits, opens)
    print("done")

run(main)
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


@pytest.mark.parametrize(
    "waits",
    [
        pytest.param("with Gate(s): await limited(AFTER, wait())", id="with a limit"),
        pytest.param("s.call(time.sleep, AFTER)", id="for a function that is slow"),
    ],
)
def test_W2_a_wait_that_ends_by_itself_is_left_alone(loop: Child, waits: str) -> None:
    done = loop(
        f"""
        async def wait():
            await s

        async def main():
            {waits}
            await s
            print("done")

        run(main)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


@pytest.mark.needs("schedules")
@pytest.mark.parametrize("stuck", [True, False])
def test_W3_a_loop_beside_threads_that_take_turns(child: Child, lib: str, stuck: bool) -> None:
    source = START.format(lib=lib, schedule="") + (TRIO if lib == "trio" else ASYNCIO)
    source += textwrap.dedent(
        f"""
        async def main():
            s, opens, told = hs.Stream(), threading.Event(), False
            gate = Gate(s)
            other = threading.Thread(target=lambda: (opens.wait(), gate.open()))
            other.start()
            if {stuck}:
                try:
                    await s
                except hs.StallError:
                    told = True
            opens.set()
            await s
            other.join()
            assert told == {stuck}

        hs.testing.explore(lambda: run(main), schedules=3, threads=True)
        """
    )
    done = child(source, timeout=2 * LIMIT)
    assert done.returncode == 0, done.stderr


def test_W2_HALSTREAM_STALL_0_lets_loops_wait(child: Child, lib: str) -> None:
    source = START.format(lib=lib, schedule="fifo") + (TRIO if lib == "trio" else ASYNCIO)
    source += textwrap.dedent(
        """
        async def main():
            gate = Gate(s)
            threading.Timer(AFTER, os._exit, (3,)).start()
            await s

        run(main)
        """
    )
    done = child(source, env={"HALSTREAM_STALL": "0"}, timeout=LIMIT)
    assert done.returncode == 3, done.stderr
