"""What may still act although every thread that runs Python code waits."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from collections.abc import Container, Iterable
from types import CodeType, FrameType

from .. import _native, _sites
from .._records import ThreadRecord, decode, encode
from .blocked import HOOKS
from .bystanders import is_bystander

__all__ = ["belongs_to_tool", "idle_thread_exists", "native_threads", "signal_may_come", "waits_for_ever"]

# Packages whose threads and handlers watch a program and have no part in it. All
# others may be the program's own, also where they are installed.
_TOOLS = frozenset(
    {
        "pytest_timeout", "_pytest", "pytest", "pluggy", "xdist", "execnet", "coverage",
        "tqdm", "IPython", "ipykernel", "debugpy", "pydevd", "_pydevd_bundle",
    }
)  # fmt: skip

# Libraries that those are made of; programs may use them, too.
_PARTS = frozenset({"tornado", "zmq"})

# Threads of torch.distributed that carry bytes between processes, and call nothing of the program.
_CARRIERS = ("gloo_tcp_loop", "pt_tcpstore", "halstream_sends")

# Those that carry out what a group of gloo's was asked for, and then the program's callbacks.
_WORKER = "pt_gloo_runloop"


def belongs_to_tool(ident: int, frame: FrameType) -> bool:
    """Return True for a thread of a tool, such as a progress bar's or a test runner's.

    Nothing but the tool and the standard library is on its stack.
    """
    root = getattr(getattr(_threads().get(ident), "function", None), "__code__", None)  # a timer's
    at: FrameType | None = frame
    while at is not None:
        code = at.f_code
        if code.co_filename in HOOKS:
            at = at.f_back
            continue
        if not _sites.is_library(code.co_filename) and _sites.package(code.co_filename) not in _TOOLS | _PARTS:
            return False
        if code.co_filename != threading.__file__:
            root = code
        at = at.f_back
    return root is not None and _of_tool(root)


def idle_thread_exists(frames: Container[int], me: int) -> bool:
    """Return True if a thread exists that runs no Python code now, but may.

    Parameters
    ----------
    frames : container of int
        The threads that do run Python code.
    me : int
        The calling thread.
    """
    if getattr(threading, "_limbo", None):
        return True  # one is being started
    for ident, thread in _threads().items():
        if ident in frames or ident == me:
            continue
        if type(thread).__name__ != "_DummyThread":
            if thread.is_alive():
                return True
        elif not _has_ended(thread.native_id) and not waits_for_ever(thread.native_id or 0):
            return True  # a native thread that has run Python code, as autograd's do; it may again
    return False


def _has_ended(native: int | None) -> bool:
    """Return True if a native thread has ended, of which Python is not notified."""
    return os.path.exists("/proc/self/task") and not os.path.exists(f"/proc/self/task/{native}")


def native_threads(frames: Iterable[int], collectives: int = 0) -> list[str]:
    """Return the names of the threads that may act and that Python does not know.

    `frames` are the numbers of the threads that run Python code, and `collectives` is how many
    collectives run, each of which may keep a thread of torch's busy.

    A library may have started them, and one that has run no Python yet may do so
    at any time.
    """
    known = {thread.native_id for thread in _threads().values()} | {threading.get_native_id()}
    # The watchdog of faulthandler waits for its time and then ends the process.
    watchdogs = int("faulthandler" in sys.modules)
    found = []
    threads: list[ThreadRecord] = decode(_native.stall_threads(encode([*frames])))
    for thread in threads:
        if thread["id"] in known or is_bystander(thread["id"]):
            continue
        if thread["watchdog"] and watchdogs:
            watchdogs -= 1
            continue
        if thread["name"].startswith(_CARRIERS):
            continue
        if thread["name"] == _WORKER and collectives:
            collectives -= 1
            continue
        found.append(f"{thread['name'] or 'thread'} ({thread['id']})")
    return found


def signal_may_come() -> bool:
    """Return True if the program has a handler for a signal, which a person, a timer or another process may send.

    Those of tools and libraries do not count, nor does Python's own for Ctrl-C: it raises, and opens no gate.
    """
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if not callable(handler) or handler is signal.default_int_handler:
            continue
        code = getattr(handler, "__code__", None)
        if code is None or not (
            _of_tool(code)
            or _sites.is_library(code.co_filename)
            or _sites.is_own(code.co_filename)
            or _interrupts_trio(code)
        ):
            return True
    return False


def waits_for_ever(thread: int) -> str:
    """Return what a native thread waits for that cannot come by itself, "" if it may go on.

    `thread` is the system's number of it. It may go on unless the system says that it
    waits for a lock of this process without a limit, or for a signal.
    """
    return str(_native.stall_native(thread))


def _threads() -> dict[int, threading.Thread]:
    """Return the threads by number, without the lock that `threading.enumerate` takes."""
    return dict(getattr(threading, "_active", {}))


def _of_tool(code: CodeType) -> bool:
    return _sites.package(code.co_filename) in _TOOLS


def _interrupts_trio(code: CodeType) -> bool:
    """Return True for the handler by which trio raises KeyboardInterrupt, in place of Python's own."""
    module = sys.modules.get("trio._core._ki")
    return module is not None and code.co_filename == module.__file__
