"""Puts the control of host threads in force: the library's locks, threads and time, and the runtime's calls.

Everything in `threading`, `queue` and `concurrent.futures` that waits does so by locks, which are
replaced in those modules; what was made before keeps its own. Methods are replaced by ones
that pass a point first, and are put back at the end.
"""

from __future__ import annotations

import concurrent.futures.thread
import functools
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from .. import _native, _sites
from .._checks import tracked
from .._core import _awaiting
from .._core._device import Device
from .._core._event import Event
from .._core._stream import Stream
from .._errors import ScheduleError
from .._memory import _copies
from .._memory._array import Array
from .._runtime import runtime
from .control import AWAY, ENDED, Control, Ended, Member, active
from .threadlocks import Lock, RLock

__all__ = ["install", "remove"]

_sleep = time.sleep

#: Calls of the runtime before which another thread may go on.
_CALLS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        Stream,
        (
            *("record", "wait", "wait_event", "wait_stream", "query", "synchronize", "launch"),
            *("call", "call_checked", "call_many"),
        ),
    ),
    (Stream, ("call_native", "delay")),
    (Event, ("record", "wait", "query", "synchronize")),
    (Device, ("synchronize",)),
    (_awaiting._Line, ("ask",)),  # a loop whose tasks look again and again calls nothing else
    (Array, ("copy_from",)),
    # What all dialects copy, fill, allocate and free by.
    (_copies, ("_stream_copy", "_stream_copy_as", "_stream_fill")),
    (
        _native,
        (
            "stream_copy_rows",
            "stream_fill_blocking",
            "stream_write_value",
            "stream_wait_value",
            "mem_alloc",
            "mem_alloc_async",
            "mem_free",
            "mem_free_no_wait",
            "mem_free_async",
            "host_alloc",
            "host_free",
        ),
    ),
    (threading.Event, ("is_set", "set")),
    (threading.Thread, ("is_alive",)),
)

_MISSING = object()


def _with_point(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if active.control is not None:
            active.control.point()
        return original(*args, **kwargs)

    return call


def _start(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def start(self: Any) -> None:
        control = active.control
        member = control.member() if control is not None else None
        if control is None or member is None:
            original(self)
            return
        if _is_runtimes(self):
            member.inside = True
            try:
                original(self)
            finally:
                member.inside = False
            return
        child = control.add(self.name)
        run = self.run
        self._halstream_turns = child

        def turns() -> None:
            vars(self).pop("run", None)
            control.enter(child)
            try:
                run()
            except Ended:
                pass  # the failure is reported already
            finally:
                control.leave(child)

        self.run = turns
        member.inside = True  # the wait for the system's thread is none of the program's
        try:
            original(self)
        except BaseException:
            control.discard(child)
            raise
        finally:
            member.inside = False
        control.point()

    return start


def _join(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def join(self: Any, timeout: Any = None) -> None:
        control, target = active.control, vars(self).get("_halstream_turns")
        member = control.member() if control is not None else None
        if control is None or member is None or target is None or target is member:
            original(self, timeout)
            return
        control.point()
        limit = None if timeout is None else max(0.0, timeout)
        if control.wait(member, target, lambda: target.state == "ended", limit):
            member.inside = True
            try:
                original(self)
            finally:
                member.inside = False
        elif control.closed:
            original(self, timeout)

    return join


def _shutdown(original: Callable[[], None]) -> Callable[[], None]:
    """Return `threading._shutdown`, which waits by the system's locks, with the wait for controlled threads before."""

    @functools.wraps(original)
    def shutdown() -> None:
        control = active.control
        member = control.member() if control is not None else None
        if control is not None and member is control.main:
            # Called in reverse order: after the pools of threads have ended theirs.
            threading._threading_atexits.insert(0, functools.partial(_join_all, control))  # type: ignore[attr-defined]
        original()

    return shutdown


def _join_all(control: Control) -> None:
    """Wait for the threads that the interpreter waits for; not for one that waits outside of what is controlled."""
    while (member := _running_member()) is not None:
        control.point()
        control.wait(control.main, member, functools.partial(_is_over, member))
        if control.closed:
            return


def _running_member() -> Member | None:
    """Return a controlled thread that is no daemon and runs, or waits for something that is controlled."""
    for thread in threading.enumerate():
        member: Member | None = vars(thread).get("_halstream_turns")
        if member is not None and not thread.daemon and not _is_over(member):
            return member
    return None


def _is_over(member: Member) -> bool:
    """Whether a thread has ended, or waits outside of what is controlled."""
    return member.state in (AWAY, ENDED)


def _sleeping(seconds: float, /) -> None:
    control = active.control
    member = control.member() if control is not None else None
    if control is None or member is None or not seconds >= 0:
        _sleep(seconds)
    else:
        control.sleep(member, seconds)


def _is_runtimes(thread: Any) -> bool:
    """Whether a thread is one of those that run the functions of streams."""
    code = getattr(getattr(thread, "_target", None), "__code__", None)
    return code is not None and _sites.is_own(code.co_filename)


_replaced: list[tuple[Any, str, Any, Any]] = runtime.keep("names that controlled threads replace", [])


def _replace(owner: Any, name: str, new: Any) -> None:
    _replaced.append((owner, name, vars(owner).get(name, _MISSING), new))
    setattr(owner, name, new)


def install(text: str) -> Control:
    """Control the host's threads from now on; the caller is the main thread of the run.

    Parameters
    ----------
    text : str
        Of a strategy; see `turns`.

    Raises
    ------
    ScheduleError
        If threads are controlled already, or there is no such strategy.
    """
    if active.control is not None:
        raise ScheduleError("host threads take turns already: a run with threads cannot begin inside another one")
    control = Control(text)
    for owner, names in _CALLS:
        for name in names:
            _replace(owner, name, _with_point(getattr(owner, name)))
    _replace(threading.Thread, "start", _start(threading.Thread.start))
    _replace(threading.Thread, "join", _join(threading.Thread.join))
    _replace(threading, "_shutdown", _shutdown(threading._shutdown))  # type: ignore[attr-defined]
    _replace(threading, "_allocate_lock", Lock)
    if vars(threading)["Lock"] is not tracked.Lock:  # a sanitizer's locks use these, see below
        _replace(threading, "Lock", Lock)
        _replace(threading, "RLock", RLock)
    _replace(threading, "_time", control.clock)
    _replace(queue, "time", control.clock)
    _replace(queue, "SimpleQueue", queue._PySimpleQueue)  # type: ignore[attr-defined]
    _replace(concurrent.futures.thread, "_global_shutdown_lock", Lock())
    _replace(time, "sleep", _sleeping)
    tracked.use(Lock, RLock)
    active.control = control
    return control


def remove(control: Control, failed: bool) -> None:
    """End the control: the other threads go on while they can, or end after a failure."""
    try:
        control.finish(failed)
    finally:
        control.close(failed=True)
        active.control = None
        tracked.use()
        while _replaced:
            owner, name, original, new = _replaced.pop()
            if vars(owner).get(name) is not new:
                continue  # somebody else has replaced it since
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
