"""`halstream run` for programs in C on libascendcl.so or libcuda.so.1, which read what to do from variables."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._errors import ScheduleError
from .._schedules.token import Token
from .terminal import say

__all__ = ["explore", "is_program", "plain", "recorded", "replay"]

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


def _settings(*, sanitize: bool, schedule: str = "", threads: bool = False) -> dict[str, str]:
    asked = {"HALSTREAM_SANITIZE": "threads" if threads else "1"} if sanitize else {}
    return asked | ({"HALSTREAM_SCHEDULE": schedule} if schedule else {})


def _code(returncode: int) -> int:
    """Return the exit code of the command for that of a program, which is negative after a signal."""
    return 1 if returncode == _FOUND else 128 - returncode if returncode < 0 else returncode


def recorded(path: str, args: Sequence[str], env: dict[str, str], **options: Any) -> tuple[Any, dict[str, Any]]:
    """Run a program that says at its end what it did.

    Parameters
    ----------
    path, args : str, sequence of str
        The program and its arguments.
    env : dict of str to str
        Variables for the library.
    **options
        For `subprocess.run`.

    Returns
    -------
    tuple
        What `subprocess.run` returned, and the record: ``fingerprint``, ``operations``, ``executed`` and ``sites``;
        empty if the program did not get to its end or does not use the library.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        given = {**os.environ, **env, "HALSTREAM_RECORD": str(file)}
        done = subprocess.run(_command(path, args), env=given, **options)
        return done, json.loads(file.read_text()) if file.exists() else {}


def plain(path: str, args: Sequence[str], *, sanitize: bool, threads: bool) -> int:
    """Run a program once, on this process's terminal, and return the exit code for the command."""
    env = {**os.environ, **_settings(sanitize=sanitize, threads=threads)}
    return _code(subprocess.run(_command(path, args), env=env).returncode)


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
        record: dict[str, Any] = {}
        try:
            done, record = recorded(path, args, given, capture_output=True, timeout=timeout)
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
        if record.get("fingerprint"):
            token = Token.of(given["HALSTREAM_SCHEDULE"], record["fingerprint"])
            words = ["halstream", "replay", *["--sanitize"] * sanitize, str(token), path, *args]
            print(shlex.join(words), file=sys.stderr, flush=True)
        return 1
    say(f"the program passed under {schedules} schedule(s)")
    return 0


def replay(text: str, path: str, args: Sequence[str], *, sanitize: bool) -> int:
    """Run a program under the schedule of a token, on this process's terminal.

    Returns
    -------
    int
        0 if it does not fail; else the exit code for the command.

    Raises
    ------
    ScheduleError
        If the token cannot be read, or is of a program that makes other calls; also where a program that passes
        has not said which it makes.
    """
    token = Token.parse(text)
    done, record = recorded(path, args, _settings(sanitize=sanitize, schedule=token.spec))
    code = _code(done.returncode)
    ended = f"it failed, with exit code {code}" if code else "it passed"
    if record and record["fingerprint"][:8] != token.fingerprint:
        raise ScheduleError(f"{ended}, but the token is of a program that made other calls; look for a new one")
    if not record and not code:
        raise ScheduleError(
            f"{ended}, but nothing is known of its calls: it does not use libascendcl.so or libcuda.so.1, "
            "or ended by _exit"
        )
    say(f"under {token} the program {'failed again' if code else 'passes'}")
    return code
