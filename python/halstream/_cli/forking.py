"""Runs of a script in processes that are forked from one that has imported what each of them imports first.

Importing torch takes most of the time of a short program. The process that is forked has no thread of the runtime and
no backend: each run starts its own, as a process that Python has just started does.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, Any

__all__ = ["Forks", "LostError", "forks", "imported_later", "kill_run", "settings_of_torch"]

#: How long the process that forks may import, in seconds: a run by itself would take as long.
_IMPORTS = 120.0

#: What torch imports when an operator or an optimizer asks for it. A program that uses none need not wait for it.
_LATER = ("torch.fx.experimental.symbolic_shapes", "torch._dynamo")


class LostError(Exception):
    """The process that forks has ended, so that nothing is known of the run."""


class Forks:
    """The process that forks, as seen by the one that wants runs.

    Parameters
    ----------
    command : sequence of str
        Starts it; the number of the socket's descriptor is added.
    environment : dict
    """

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - kept
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is for the command, which ends it
            )
        self.also: list[str] = []  #: of `_LATER`, what is imported before the next run is forked
        self._lines = self._socket.makefile("rw", encoding="utf-8")
        atexit.register(self.end)
        try:
            self.ready: bool = self._answer_within(_IMPORTS)  #: whether it can fork
        except LostError:
            self.ready = False
        if not self.ready:
            self.end()

    def run(self, request: Sequence[str], sink: IO[bytes], limit: float) -> int | None:
        """Run ``_child`` with a request; return its exit code, None if it took more than `limit` seconds.

        Parameters
        ----------
        request : sequence of str
            The arguments of ``_child``.
        sink : file
            Gets what the run prints.
        limit : float

        Raises
        ------
        LostError
            If the process that forks has ended, or imports for too long.
        """
        self._printed.seek(0)
        sink.write(self._printed.read())  # as if each run had imported by itself
        sink.flush()
        try:
            self._say({"run": list(request), "sink": sink.name, "also": self.also})
            pid = self._answer_within(_IMPORTS)
            self._say("watch")
            return self._ended(pid, limit)
        except LostError:
            self.ready = False
            raise

    def _ended(self, pid: int, limit: float) -> int | None:
        try:
            late = not self._comes_within(limit)
            if late:
                os.kill(pid, signal.SIGABRT)  # prints the stacks of all threads
                self._comes_within(5)
        finally:
            code = self._reaped(pid)
        return None if late else code

    def _reaped(self, pid: int) -> int:
        """End a run that goes on; return its exit code. Its number is its own until ``reap``."""
        try:
            if not self._comes_within(0):
                kill_run(pid)
            self._answer()
            self._say("reap")
            code: int = self._answer()
        except LostError:
            kill_run(pid)
            raise
        return code

    def _comes_within(self, seconds: float) -> bool:
        """Return whether the process that forks says something in time; behind a "watch" that is the end of the run."""
        readable, _, _ = select.select([self._socket], [], [], seconds)
        return bool(readable)

    def _answer_within(self, seconds: float) -> Any:
        """Return an answer; no other one may be under way, as reading takes what has come."""
        if not self._comes_within(seconds):
            raise LostError
        return self._answer()

    def _say(self, words: Any) -> None:
        try:
            print(json.dumps(words), file=self._lines, flush=True)
        except OSError:
            raise LostError from None

    def _answer(self) -> Any:
        try:
            line = self._lines.readline()
        except OSError:
            line = ""
        if not line:
            raise LostError
        return json.loads(line)

    def end(self) -> None:
        """Let the process end, and with it a run that it has forked."""
        atexit.unregister(self.end)
        with contextlib.suppress(OSError):
            self._lines.close()
        self._socket.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:  # Ctrl-C came while it was forking
            self._process.kill()
            self._process.wait()
        self._printed.close()


def kill_run(pid: int) -> None:
    """End a run with all that it has started."""
    for kill in (os.killpg, os.kill):  # it may have no group of its own yet
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def forks(options: Sequence[str], torch: bool, environment: dict[str, str]) -> Forks | None:
    """Return the process that forks for runs with these options of Python; None where there cannot be one.

    That is so on systems other than Linux, and where a debugger or a measurement of coverage looks at each process.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        folder = os.getcwd()
    except FileNotFoundError:  # it was removed
        return None
    found = _begun(tuple(options), torch, folder, tuple(sorted(environment.items())))
    return found if found.ready else None


@functools.cache
def _begun(options: tuple[str, ...], torch: bool, folder: str, environment: tuple[tuple[str, str], ...]) -> Forks:
    """Return the process that forks for runs that begin in this folder with this environment."""
    command = [sys.executable, *options, "-m", "halstream", "_forks", "torch" * torch]
    return Forks(command, dict(environment))


# -- in a run -----------------------------------------------------------------


def settings_of_torch() -> dict[str, str]:
    """Return the variables of the environment that torch's modules read when they are imported."""
    own = "TORCHINDUCTOR_CACHE_DIR"  # torch sets it itself, and reads it whenever it needs it
    return {name: value for name, value in os.environ.items() if name.startswith("TORCH") and name != own}


def imported_later(settings: dict[str, str]) -> list[str]:
    """Return what torch has imported in this run and may be imported before the next one is forked.

    Nothing where the program has changed the settings of torch that there were at its start.
    """
    return [name for name in _LATER if name in sys.modules] if settings_of_torch() == settings else []
