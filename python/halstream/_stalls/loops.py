"""Determine whether an event loop, of asyncio or trio, has anything left that could wake it.

Only what can be read from the loop's own lists counts: a loop with a timer, a file that
the program listens to, or a callback that is ready may go on at any time.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from .. import _native, _sites
from .._core._awaiting import asyncio_line, trio_line
from .._errors import StallError

__all__ = [
    "asyncio_is_over", "asyncio_waits", "end_in_asyncio", "end_in_trio", "place_in_asyncio", "place_in_trio",
    "trio_is_over", "trio_waits",
]  # fmt: skip

_NO_TASKS: frozenset[int] = frozenset()
#: Seconds that trio waits for files if it has no timer.
_NO_LIMIT = 24 * 60 * 60


def asyncio_waits(frame: FrameType) -> Any:
    """Return the loop of asyncio that waits in this frame of a selector and that nothing wakes, if any."""
    outer = frame.f_back
    loop = None if outer is None or outer.f_code.co_name != "_run_once" else _sites.variables(outer).get("self")
    names = _sites.variables(frame)
    if names.get("timeout") not in (None, -1) or loop is None or getattr(loop, "_selector", None) is not names["self"]:
        return None
    return loop if not loop._scheduled and asyncio_is_over(loop) else None


def asyncio_is_over(loop: Any, looking: Collection[int] = _NO_TASKS) -> bool:
    """Return True if only another thread can wake a loop of asyncio.

    Tasks whose numbers, by `id`, are in `looking` only ask whether work of the device is
    done; that they are ready does not count. Other kinds of loops cannot be read: False.
    """
    try:
        # What empties the loop's own pipe only says that there was something to read.
        ready = [one._callback for one in loop._ready if not one._cancelled and one._callback != loop._read_from_self]
        if any(id(getattr(callback, "__self__", None)) not in looking for callback in ready):
            return False
        if any(not one._cancelled for one in loop._scheduled) or getattr(loop, "_signal_handlers", None):
            return False
        # Its own files, and the pipe of what it awaits: others may have news from outside.
        return bool(len(loop._selector.get_map()) == loop._internal_fds + (asyncio_line(loop) is not None))
    except (AttributeError, TypeError, RuntimeError):  # a list that changes meanwhile is a loop that goes on
        return False


def trio_waits(frame: FrameType) -> Any:
    """Return the run of trio that waits in this frame for files and that nothing wakes, if any."""
    outer = frame.f_back
    trio = sys.modules.get("trio")
    if trio is None or outer is None or outer.f_code is not getattr(trio.run, "__code__", None):
        return None
    runner, limit = _sites.variables(outer).get("runner"), _sites.variables(outer).get("timeout", 0)
    return runner if limit >= _NO_LIMIT and trio_is_over(runner) else None


def trio_is_over(runner: Any, looking: Collection[int] = _NO_TASKS) -> bool:
    """Return True if only another thread can wake a run of trio; see `asyncio_is_over`."""
    try:
        if runner.is_guest or runner.deadlines._active or runner.waiting_for_idle:
            return False
        if runner.clock_autojump_threshold < _NO_LIMIT:
            return False
        entry = runner.entry_queue
        if entry.queue or entry.idempotent_queue:
            return False
        # A task that is to run has what is sent to it; those of the current round are in no list.
        if any(task._next_send_fn is not None and id(task) not in looking for task in runner.tasks):
            return False
        line = trio_line(runner)
        own = {entry.wakeup.wakeup_sock.fileno()}
        if line is not None:
            own.add(int(_native.notices_file(line.id)))
        # By file, or on systems with kqueue by file and what is asked of it.
        files = {one[0] if isinstance(one, tuple) else one for one in runner.io_manager._registered}
        return files <= own
    except (AttributeError, TypeError, RuntimeError):
        return False


def place_in_asyncio(loop: Any) -> str:
    """Return where a task of a loop is, "" if that is not known."""
    stacks = [task.get_stack(limit=1) for task in sys.modules["asyncio"].all_tasks(loop)]
    return next((_sites.frame_line(stack[0]) for stack in stacks if stack), "")


def place_in_trio(runner: Any) -> str:
    """Return where a task of a run is, rather one that awaits the device, "" if that is not known."""
    line = trio_line(runner)
    waiting = {} if line is None else dict(line.waiting)
    task = waiting[min(waiting)] if waiting else runner.main_task
    frame = getattr(getattr(task, "coro", None), "cr_frame", None)
    return "" if frame is None else _sites.frame_line(frame)


def end_in_asyncio(loop: Any, deliver: Callable[[], object]) -> bool:
    """Let `deliver` raise `StallError` in a task that awaits the device; False if none does, and nothing is done.

    Any thread may call this.
    """
    line = asyncio_line(loop)
    if line is None or not line.waiting:
        return False
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(_deliver_in_asyncio, loop, deliver)
    return True


def end_in_trio(runner: Any, deliver: Callable[[], object]) -> None:
    """Let `deliver` raise `StallError` in a task that waits; any thread may call this.

    An error that came out of trio's own code would leave its tasks and their `finally` behind.
    """
    with contextlib.suppress(RuntimeError):  # the run has ended meanwhile
        runner.entry_queue.run_sync_soon(_deliver_in_trio, runner, deliver)


def _deliver_in_asyncio(loop: Any, deliver: Callable[[], object]) -> None:
    line = asyncio_line(loop)
    if line is None or not asyncio_is_over(loop):
        return
    try:
        deliver()
    except StallError as exc:
        line.stop(exc)


def _deliver_in_trio(runner: Any, deliver: Callable[[], object]) -> None:
    if not trio_is_over(runner):
        return
    try:
        deliver()
    except StallError as exc:
        line, error = trio_line(runner), exc
        if line is not None and line.stop(error):
            return

        def cancelled() -> None:
            raise error

        # As trio does it with a KeyboardInterrupt.
        if runner.main_task is not None and runner.main_task._abort_func is not None:
            runner.main_task._attempt_abort(cancelled)
