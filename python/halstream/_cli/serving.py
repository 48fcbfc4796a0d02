"""The process that forks a process for each run of a script."""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import IO, Any

from .. import _native
from .child import main as run
from .forking import kill_run

__all__ = ["serve"]

#: What a run with torch imports before its program starts, besides torch.
_BEFORE_REDIRECTING = (
    "halstream.torch",
    "halstream.torch._redirect.redirection",
    "halstream.torch._redirect.module_names",
    "halstream.torch._redirect.runtime_names",
)
#: A process in which one of these works looks at each run in a process of its own only.
_OBSERVERS = ("coverage", "pydevd", "debugpy")


def serve(argv: Sequence[str]) -> int:
    """Import, then fork a process for each request that comes, until there are no more.

    Parameters
    ----------
    argv : sequence of str
        ``"torch"`` or ``""``, and the number of the socket's descriptor.

    Returns
    -------
    int
        In each process that was forked, the exit code of its run; the other one ends here.
    """
    torch, descriptor = argv
    gc.disable()  # as a run does before it imports
    with socket.socket(fileno=int(descriptor)) as own, own.makefile("rw", encoding="utf-8") as lines:

        def say(words: Any) -> None:
            print(json.dumps(words), file=lines, flush=True)

        ready = _imported(bool(torch))
        say(ready)
        request = _forked(own, lines, say) if ready else None
    if request is None:
        os._exit(0)  # at once: there is nothing to end here
    _begin(request["sink"])
    return run(request["run"])


def _imported(torch: bool) -> bool:
    """Import what each run does; return whether processes may be forked from this one."""
    if torch and not _import(("torch", *_BEFORE_REDIRECTING)):
        return False
    traced = sys.gettrace() is not None or sys.getprofile() is not None
    observed = traced or any(name in sys.modules for name in _OBSERVERS)
    alone = threading.active_count() == 1 and not _native.loaded()
    return alone and not observed


def _import(names: Sequence[str]) -> bool:
    """Import modules; return whether that is possible. If it is not, each run says by itself what is wrong."""
    try:
        for name in names:
            importlib.import_module(name)
    except BaseException:
        return False
    gc.collect()
    gc.freeze()  # the end of a run would copy the memory of each object here to look at it
    return True


def _forked(own: socket.socket, lines: IO[str], say: Callable[[Any], None]) -> dict[str, Any] | None:
    """Fork for each request; return it in the process that was forked, None where there are no more."""
    for line in lines:
        request: dict[str, Any] = json.loads(line)
        if not all(name in sys.modules for name in request["also"]):
            _import(request["also"])
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Threads of libraries that calculate end and begin with a fork; there are none of Python.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            return request
        try:
            say(pid)
            watched = lines.readline()  # "watch": the number was read, so that what comes next is the end alone
        except OSError:
            watched = ""
        if not watched or not _ends(pid, own):  # Ctrl-C, or the one that wanted the run was killed
            kill_run(pid)
            os.waitpid(pid, 0)
            return None
        say("ended")
        lines.readline()
        say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return None


def _ends(pid: int, own: socket.socket) -> bool:
    """Wait for the end of a run; return False at once when nobody waits for it any more."""
    try:
        ended = os.pidfd_open(pid)
    except (AttributeError, OSError):  # Linux before 5.3, or a Python that was built for it
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return True
    try:
        return ended in select.select([ended, own.fileno()], [], [])[0]
    finally:
        os.close(ended)


def _begin(sink: str) -> None:
    """Let this process be as one that Python has just started for a run."""
    os.setsid()  # ended with all that it starts
    file = os.open(sink, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # Python draws new numbers for its own module by itself
