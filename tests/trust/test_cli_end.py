"""The end of a program that `halstream run` runs is that of ``python program.py``."""

from __future__ import annotations

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


def test_what_was_submitted_runs_before_the_end_and_nothing_is_taken_afterwards(cli: Any) -> None:
    cli.script(
        """
        import threading
        from concurrent.futures import ThreadPoolExecutor

        go = threading.Event()
        executor = ThreadPoolExecutor(1)
        executor.submit(go.wait)
        executor.submit(print, "submitted before the end")

        def submit_late():
            while not go.wait(0.01):
                try:
                    executor.submit(int)
                except RuntimeError as exc:
                    print("refused:", exc)
                    go.set()

        threading.Thread(target=submit_late).start()
        """
    )
    done = cli("run", "prog.py")
    assert done.returncode == 0, done.stderr
    assert "submitted before the end" in done.stdout
    assert "refused: cannot schedule new futures after" in done.stdout


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


def test_an_ending_that_fails_is_printed_and_the_others_are_called(cli: Any) -> None:
    cli.script(
        """
        import threading
        from concurrent.futures import ThreadPoolExecutor

        executor = ThreadPoolExecutor(1)
        executor.submit(int).result()

        def fail():
            raise ValueError("an ending fails")

        threading._register_atexit(fail)
        """
    )
    done = cli("run", "prog.py")
    assert done.returncode == 0
    assert "ValueError: an ending fails" in done.stderr
