"""The end of a program that `halstream run` runs is that of ``python program.py``."""

from __future__ import annotations

import signal
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("backend")

#: Its executors are never shut down, as those of many libraries; a thread that is no daemon made one of them.
LEFT_EXECUTORS = """
import threading
from concurrent.futures import ThreadPoolExecutor
import halstream as hs

executors = []

def work(n):
    stream = hs.Stream()
    stream.nop()
    stream.synchronize()
    return n

def later():
    executors.append(ThreadPoolExecutor(1))
    print("in a thread", executors[-1].submit(work, 2).result())

executors.append(ThreadPoolExecutor(2))
print("result", executors[0].submit(work, 42).result())
thread = threading.Thread(target=later)
thread.start()
"""


@pytest.mark.parametrize(
    "words",
    [
        ["run", "prog.py"],
        ["run", "-m", "prog"],
        ["run", "--sanitize", "prog.py"],
        ["run", "--sanitize", "--fix=diff", "prog.py"],
        ["trace", "prog.py"],
    ],
)
def test_a_program_that_leaves_executors_ends(cli: Any, words: list[str]) -> None:
    cli.script(LEFT_EXECUTORS)
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    assert "result 42" in done.stdout and "in a thread 2" in done.stdout


@pytest.mark.needs("schedules")
def test_each_schedule_of_a_program_that_leaves_an_executor_ends(cli: Any) -> None:
    cli.script(
        """
        from concurrent.futures import ThreadPoolExecutor
        import halstream as hs

        stream = hs.Stream()
        stream.nop()
        stream.synchronize()
        executor = ThreadPoolExecutor(1)
        assert executor.submit(lambda: 42).result() == 42
        """
    )
    done = cli("run", "--schedules", "3", "prog.py")
    assert done.returncode == 0 and "passed under 3 schedule(s)" in done.stdout, done.stdout + done.stderr


#: A thread that is no daemon waits for the end of the main thread, as monitors do, when a pool takes no more.
WAITS_FOR_MAIN = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import halstream as hs

stream = hs.Stream()
stream.nop()
stream.synchronize()
executor = ThreadPoolExecutor(1)
executor.submit(print, "submitted before the end", flush=True)

def late():
    threading.main_thread().join()
    try:
        executor.submit(print, "never")
    except RuntimeError as exc:
        print("refused:", exc, flush=True)

threading.Thread(target=late).start()
sys.exit(3)
"""


@pytest.mark.parametrize("options", [[], ["--sanitize"]], ids=["plain", "sanitize"])
def test_a_thread_that_waits_for_the_main_thread_ends(cli: Any, options: list[str]) -> None:
    cli.script(WAITS_FOR_MAIN)
    done = cli("run", *options, "prog.py")
    assert done.returncode == 3, done.stderr
    assert "submitted before the end" in done.stdout
    assert "refused: cannot schedule new futures after" in done.stdout


@pytest.mark.needs("schedules")
@pytest.mark.parametrize("options", [[], ["--threads"]], ids=["order", "threads"])
def test_each_schedule_of_a_program_whose_thread_waits_for_the_main_thread_ends(cli: Any, options: list[str]) -> None:
    cli.script(WAITS_FOR_MAIN)
    done = cli("run", *options, "--schedules", "2", "--timeout", "50", "--shrink-runs", "1", "prog.py")
    assert done.returncode == 1 and "the script failed: exit code 3" in done.stdout, done.stdout + done.stderr


@pytest.mark.needs("schedules")
def test_a_thread_that_waits_for_ever_at_the_end_is_reported(cli: Any) -> None:
    cli.script(
        """
        import queue, threading
        import halstream as hs
        from halstream.testing import Gate

        stream = hs.Stream()
        gate = Gate(stream)
        stream.nop()
        threading.Thread(target=queue.Queue().get).start()
        """
    )
    done = cli("run", "prog.py")
    assert done.returncode == 1 and done.stderr.count("StallError: this wait can never end") == 1, done.stderr
    assert "waits at the end of the program for its threads" in done.stderr and "made at prog.py:7" in done.stderr


def test_one_ctrl_c_ends_the_wait_for_threads(cli: Any) -> None:
    cli.script(
        """
        import atexit, concurrent.futures, threading
        atexit.register(print, "at exit")
        executor = concurrent.futures.ThreadPoolExecutor(1)
        threading._register_atexit(print, "waits", flush=True)  # called before the pool's threads are waited for
        executor.submit(threading.Event().wait)
        """
    )
    process = cli.start("run", "prog.py")
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "at exit\n"), errors
    assert errors.count("KeyboardInterrupt") == 1


def test_a_program_that_raises_keeps_its_exit_code_and_ends(cli: Any) -> None:
    cli.script(
        """
        from concurrent.futures import ThreadPoolExecutor

        executor = ThreadPoolExecutor(1)
        executor.submit(int).result()
        raise SystemExit(3)
        """
    )
    assert cli("run", "prog.py").returncode == 3


def test_a_pool_of_processes_that_nobody_shuts_down(cli: Any) -> None:
    cli.script(
        """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        if __name__ == "__main__":
            executor = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
            print("result", executor.submit(abs, -42).result())
        """
    )
    done = cli("run", "prog.py")
    assert done.returncode == 0 and "result 42" in done.stdout, done.stderr
