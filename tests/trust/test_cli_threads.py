"""`halstream run --threads`: schedules of a script that choose the turns of its threads, too."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

#: A producer that sets its event too early, which goes well as long as it runs on until it waits.
PROGRAM = """
import threading
import halstream as hs

stream, seen, ready = hs.Stream(), [], threading.Event()
lock = threading.Lock()

def produce():
    ready.set()
    with lock:
        seen.append(1)

thread = threading.Thread(target=produce)
thread.start()
ready.wait()
with lock:
    stream.call(seen.append, 2)
    stream.synchronize()
thread.join()
assert seen == [1, 2], seen
"""
FIXED = PROGRAM.replace(
    "    ready.set()\n    with lock:\n        seen.append(1)\n",
    "    with lock:\n        seen.append(1)\n    ready.set()\n",
)


# The commands start dozens of processes, which take 10 s of processor time together.
@pytest.mark.timeout(150)
def test_the_turns_of_threads_are_explored_and_replayed(cli: Any) -> None:
    cli.script(PROGRAM)
    done = cli("run", "--threads", "prog.py", limit=140)
    assert done.returncode == 1 and "AssertionError: [2, 1]" in done.stdout
    assert "Host threads run" in done.stdout
    (token,) = set(re.findall(r"halstream replay (\S+) prog\.py", done.stdout))
    again = cli("replay", token, "prog.py")
    assert again.returncode == 1 and "AssertionError: [2, 1]" in again.stderr


@pytest.mark.timeout(150)
def test_the_turns_of_a_program_that_orders_its_threads_are_explored(cli: Any) -> None:
    cli.script(FIXED)
    done = cli("run", "--threads", "--schedules", "20", "prog.py", limit=140)
    assert done.returncode == 0 and "passed under 20 schedule(s)" in done.stdout, done.stdout + done.stderr


def test_turns_begin_in_the_main_thread(cli: Any) -> None:
    cli.script(
        """
        import threading
        import halstream as hs
        thread = threading.Thread(target=hs.Stream)
        thread.start()
        thread.join()
        """
    )
    done = cli("run", "--threads", "prog.py")
    assert done.returncode == 2 and "make a stream there before" in done.stderr
