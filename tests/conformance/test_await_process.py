"""Awaits in a process that forks, and in one that ends: what only a process of its own can show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

FORKS = """
import asyncio, os, sys, warnings
import halstream as hs
from halstream.testing import Gate

warnings.simplefilter("ignore")  # newer versions of Python warn of fork with threads


async def refused(what):
    try:
        await what
    except hs.ForkError as exc:
        return "spawn" in str(exc)
    return False


async def both(*awaited):
    return [await refused(what) for what in awaited] == [True, True]


async def main():
    s = hs.Stream()
    gate = Gate(s)
    event = s.record()
    waiting = asyncio.ensure_future(wait(s))
    await asyncio.sleep(0)
    pid = os.fork()
    if pid == 0:
        asyncio._set_running_loop(None)  # that of the parent
        os._exit(0 if asyncio.new_event_loop().run_until_complete(both(s, event)) else 2)
    _, status = os.waitpid(pid, 0)
    assert not waiting.done()
    gate.open()
    await asyncio.wait_for(waiting, 10)
    return os.waitstatus_to_exitcode(status)


async def wait(what):
    await what


sys.exit(asyncio.run(main()))
"""


def test_Z7_a_forked_child_is_refused_and_the_wait_of_the_parent_goes_on(child: Child) -> None:
    done = child(FORKS)
    assert (done.returncode, done.stderr) == (0, "")


#: How a process ends in which a task waits for a stream that is held.
ENDS = {
    "run": "asyncio.run(begun())",
    "an error": "asyncio.run(failing())",
    "an open loop": "loop = asyncio.new_event_loop(); loop.run_until_complete(begun())",
    "a thread": "threading.Thread(target=asyncio.run, args=(forever(),), daemon=True).start(); ready.wait(10)",
    "trio": "trio.run(in_trio)",
}

PENDING = """
import asyncio, atexit, sys, threading
import halstream as hs
import trio
from halstream.testing import Gate

s = hs.Stream()
gate = Gate(s)
atexit.register(gate.open)  # the notice of the wait then comes when no loop looks any more
ready = threading.Event()
tasks = []


async def wait():
    await s


async def begun():
    tasks.append(asyncio.ensure_future(wait()))
    await asyncio.sleep(0)


async def failing():
    await begun()
    sys.exit(3)


async def forever():
    await begun()
    ready.set()
    await tasks[0]


async def in_trio():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


{}
print("end", s.query())
"""


@pytest.mark.parametrize("way", ENDS)
def test_Z7_a_process_may_end_while_tasks_wait(child: Child, way: str) -> None:
    pytest.importorskip("trio", reason="trio is not installed")
    done = child(PENDING.format(ENDS[way]))
    failed = way == "an error"
    assert (done.returncode, done.stdout) == (3 if failed else 0, "" if failed else "end False\n"), done.stderr
    # asyncio and the warnings of Python speak of what the program left open; the runtime has nothing to say.
    assert "halstream" not in done.stderr and "atal" not in done.stderr
