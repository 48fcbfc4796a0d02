"""The functions of halstream.h in processes that fork, end, or are interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Child = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("backend")

FORKED, SHUT_DOWN = 11, 12


@pytest.fixture
def start(cases_file: Path) -> str:
    """The first lines of a program that uses the table."""
    return (
        f"import os, signal, sys, threading, time; sys.path.insert(0, {str(cases_file.parent)!r})\n"
        "import halstream as hs, capi_cases as cases\n"
        "cases.use(hs.get_api())\n"
        "s = hs.Stream(non_blocking=True)\n"
    )


def test_C6_in_a_forked_child_every_call_fails_at_once(child: Child, start: str) -> None:
    done = child(
        start + "cases.new_event(s._id)\n"
        "gate = cases.new_gate(s._id)\n"
        "number = s._id\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    codes = cases.all_codes(number)\n"
        "    os.write(1, (repr(codes) + chr(10)).encode())\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "cases.open_gate(gate)\n"
        "print(cases.synchronize(number, -1))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str((FORKED,) * 5 + (0,)), "(0, '')"]


def test_C6_after_the_end_every_call_fails_and_the_process_ends(child: Child, start: str) -> None:
    done = child(
        start + "cases.call_at_exit()\n"
        "cases.many(4, 10)\n"
        "cases.new_event(s._id)\n"
        "gate = cases.new_gate(s._id)\n"
        "cases.leave_threads(s._id)\n"
        "cases.enqueue(s._id, 'never', 0, [])\n"
        "print('left')\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "left"
    after = [line for line in done.stderr.splitlines() if line.startswith("after the end")]
    assert after == [f"after the end: {SHUT_DOWN} the interpreter is ending and the runtime has shut down"] * 2


@pytest.mark.parametrize("busy", [False, True])
def test_C6_an_exit_finishes_work_that_can_run(child: Child, start: str, busy: bool) -> None:
    done = child(
        # Functions of atexit run in reverse order: this one after the end of the runtime.
        "import atexit\n"
        "atexit.register(lambda: print(*cases.counts()))\n"
        + start
        + ("cases.enqueue_blocking(s._id)\natexit.register(cases.unblock)\n" if busy else "")
        + "for i in range(100): cases.enqueue(s._id, 'aten::add', 0, [])\n"
        + ("print(s.query())\n" if busy else "cases.synchronize(s._id, -1)\n")
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*(["False"] if busy else []), "100 100"]
    assert "left" not in done.stderr


@pytest.mark.needs("stalls")  # which list the threads that wait
def test_C7_a_signal_ends_a_wait_with_its_handlers_exception(child: Child, start: str) -> None:
    done = child(
        start + "from halstream import _native, _records\n"
        "gate = cases.new_gate(s._id)\n"
        "def interrupt():\n"
        "    while not _records.decode(_native.stall_waits()): time.sleep(0.001)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "try:\n"
        "    cases.synchronize(s._id, -1)\n"  # waits without a limit are listed; `child` has one
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "cases.open_gate(gate)\n"
        "print(cases.synchronize(s._id, -1))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["interrupted", "(0, '')"]


@pytest.mark.needs("stalls")
def test_C7_a_wait_that_nothing_can_end_fails(child: Child, start: str) -> None:
    done = child(
        start + "gate = cases.new_gate(s._id)\n"
        "try:\n"
        "    cases.synchronize(s._id, -1)\n"
        "except hs.StallError as error:\n"
        "    print('gate' in str(error))\n"
        "cases.open_gate(gate)\n"
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
