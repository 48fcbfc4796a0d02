"""`halstream run` for programs in C that use libascendcl.so: the library itself reads what to do from variables."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .terminal import say

__all__ = ["explore", "is_program", "plain"]

#: The exit code of a program in which the library's sanitizer found something.
_FOUND = 66


def is_program(path: str) -> bool:
    """Return whether a file is a compiled program, by its first bytes."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _command(path: str, args: Sequence[str]) -> list[str]:
    return [os.path.abspath(path), *args]


def _settings(*, sanitize: bool, schedule: str = "") -> dict[str, str]:
    return ({"HALSTREAM_SANITIZE": "1"} if sanitize else {}) | ({"HALSTREAM_SCHEDULE": schedule} if schedule else {})


def _code(returncode: int) -> int:
    """Return the exit code of the command for that of a program, which is negative after a signal."""
    return 1 if returncode == _FOUND else 128 - returncode if returncode < 0 else returncode


def plain(path: str, args: Sequence[str], *, sanitize: bool) -> int:
    """Run a program once, on this process's terminal, and return the exit code for the command."""
    return _code(subprocess.run(_command(path, args), env={**os.environ, **_settings(sanitize=sanitize)}).returncode)


def explore(path: str, args: Sequence[str], schedules: int, seed: int, timeout: float, *, sanitize: bool) -> int:
    """Run a program under schedules until it fails under one, and say which.

    Parameters
    ----------
    path, args : str, sequence of str
        The program and its arguments.
    schedules, seed : int
        How many there are, and where they begin.
    timeout : float
        Seconds that a run may take.
    sanitize : bool
        A report of the library's sanitizer is a failure, too.

    Returns
    -------
    int
        1 if it failed, else 0.
    """
    for number in range(schedules):
        given = _settings(sanitize=sanitize, schedule=f"random {seed * schedules + number}" if number else "fifo")
        try:
            done = subprocess.run(
                _command(path, args), env={**os.environ, **given}, capture_output=True, timeout=timeout
            )
        except subprocess.TimeoutExpired as exc:
            output, why = (exc.stdout or b"") + (exc.stderr or b""), f"did not end within {timeout:g} s"
        else:
            if done.returncode == 0:
                continue
            output = done.stdout + done.stderr
            why = "ended by signal " if done.returncode < 0 else "ended with exit code "
            why += str(abs(done.returncode))
        sys.stdout.buffer.write(output)
        sys.stdout.flush()
        say(f"the program {why}, in run {number + 1} of {schedules}; once more:")
        again = [f"{name}={shlex.quote(value)}" for name, value in given.items()]
        print(" ".join([*again, shlex.join([path, *args])]), file=sys.stderr, flush=True)
        return 1
    say(f"the program passed under {schedules} schedule(s)")
    return 0
