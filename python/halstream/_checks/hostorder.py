"""The order that host threads make among themselves, for the checker.

While a sanitizer is on, the library's objects that order threads say what they order:
locks, conditions (and with them events and semaphores), barriers, queues, futures, the start
and the end of threads, and callbacks that another thread gives to an event loop. Methods are
replaced by ones that call the original and say what happened; they do nothing else, hold no
lock, and are taken out again. Locks that were made before cannot be seen, since their class
is not Python's; conditions around them can.
"""

from __future__ import annotations

import asyncio.base_events
import concurrent.futures
import concurrent.futures.thread
import functools
import queue
import threading
from collections.abc import Callable
from typing import Any

from .. import _sites
from .._native._constants import ORDER_ACQUIRE, ORDER_BEGIN, ORDER_END, ORDER_RELEASE
from .._runtime import runtime
from . import tracked
from .orderobjects import Items, Number, State, muted, number_of, number_of_lock, report_order

__all__ = ["install", "remove"]

# -- methods of the library -------------------------------------------------


def _condition_enter(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __enter__(self: Any) -> Any:
        entered = original(self)
        report_order(ORDER_ACQUIRE, number_of_lock(self._lock))
        return entered

    return __enter__


def _condition_exit(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __exit__(self: Any, *args: Any) -> Any:
        report_order(ORDER_RELEASE, number_of_lock(self._lock))
        return original(self, *args)

    return __exit__


def _condition_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(self: Any, timeout: Any = None) -> Any:
        number = number_of_lock(self._lock)
        report_order(ORDER_RELEASE, number)
        try:
            return original(self, timeout)
        finally:
            report_order(ORDER_ACQUIRE, number)

    return wait


def _event_is_set(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def is_set(self: Any) -> Any:
        found = original(self)
        if found:
            report_order(ORDER_ACQUIRE, number_of_lock(self._cond._lock))
        return found

    return is_set


def _queue_put(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def put(self: Any, item: Any, block: bool = True, timeout: Any = None) -> None:
        if muted.muted or not State.on:
            original(self, item, block, timeout)
            return
        items = Items.of(self)
        items.put_begins(item)
        muted.muted = True
        try:
            original(self, item, block, timeout)
        except BaseException:
            items.put_fails(item)
            raise
        finally:
            muted.muted = False
        if self.maxsize > 0:
            items.put_found_room()

    return put


def _queue_get(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get(self: Any, block: bool = True, timeout: Any = None) -> Any:
        if muted.muted or not State.on:
            return original(self, block, timeout)
        muted.muted = True
        try:
            item = original(self, block, timeout)
        finally:
            muted.muted = False
        Items.of(self).got(item)
        return item

    return get


# A barrier orders all that arrive before all that leave. The lock in it orders more by chance: who leaves
# late would come after what another one did before it arrived again.
_ROUND = "_halstream_round"


def _barrier_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(self: Any, timeout: Any = None) -> Any:
        if muted.muted or not State.on:
            return original(self, timeout)
        outer = muted.round  # that of a barrier whose action waits here
        muted.muted, muted.round = True, None
        broken = True
        try:
            index = original(self, timeout)
            broken = False
            return index
        finally:
            muted.muted = False
            met, muted.round = muted.round, outer
            if met is not None:
                report_order(ORDER_ACQUIRE, met.value)
            if broken:  # by a thread that was in this round, or by one that called `abort` or `reset`
                vars(self).pop(_ROUND, None)
                report_order(ORDER_ACQUIRE, number_of_lock(self._cond._lock))

    return wait


def _barrier_enter(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _enter(self: Any) -> Any:
        original(self)  # returns when the threads of the round before have left; the lock is held
        if muted.muted:
            muted.round = vars(self).setdefault(_ROUND, Number())
            _report_unmuted(ORDER_RELEASE, muted.round.value)

    return _enter


def _barrier_release(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _release(self: Any) -> Any:
        last = vars(self).pop(_ROUND, None)  # who arrives after this belongs to the next round
        if last is None or not muted.muted:
            return original(self)
        _report_unmuted(ORDER_ACQUIRE, last.value)
        muted.muted = False  # the action is the program's
        try:
            return original(self)
        finally:
            report_order(ORDER_RELEASE, last.value)
            muted.muted = True

    return _release


def _report_unmuted(what: int, number: int) -> None:
    muted.muted = False
    report_order(what, number)
    muted.muted = True


def _thread_start(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start(self: Any) -> Any:
        report_order(ORDER_RELEASE, number_of(self))
        return original(self)

    return start


def _thread_bootstrap(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _bootstrap_inner(self: Any) -> Any:
        if _is_runtimes(self):
            return original(self)
        number = number_of(self)
        report_order(ORDER_BEGIN, number)
        try:
            return original(self)
        finally:
            report_order(ORDER_RELEASE, number)
            report_order(ORDER_END, number)

    return _bootstrap_inner


def _thread_join(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def join(self: Any, timeout: Any = None) -> Any:
        done = original(self, timeout)
        self.is_alive()  # which reports the order
        return done

    return join


def _thread_is_alive(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def is_alive(self: Any) -> Any:
        alive = original(self)
        if not alive:
            report_order(ORDER_ACQUIRE, number_of(self))
        return alive

    return is_alive


def _item_made(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        report_order(ORDER_RELEASE, number_of(self.future))

    return __init__


def _item_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        report_order(ORDER_ACQUIRE, number_of(self.future))
        return original(self, *args, **kwargs)

    return run


def _loop_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call_soon_threadsafe(self: Any, callback: Any, *args: Any, **kwargs: Any) -> Any:
        if not State.on:
            return original(self, callback, *args, **kwargs)
        handed = Number()
        report_order(ORDER_RELEASE, handed.value)
        return original(self, functools.partial(_run_handed, handed, callback), *args, **kwargs)

    return call_soon_threadsafe


def _run_handed(handed: Number, callback: Callable[..., Any], *args: Any) -> Any:
    report_order(ORDER_ACQUIRE, handed.value)
    return callback(*args)


def _is_runtimes(thread: Any) -> bool:
    """Return True for the threads that run functions of streams, whose order is that of the streams."""
    target = getattr(thread, "_target", None)
    code = getattr(target, "__code__", None)
    return code is not None and _sites.is_own(code.co_filename)


_METHODS: tuple[tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]], ...] = (
    (threading.Condition, "__enter__", _condition_enter),
    (threading.Condition, "__exit__", _condition_exit),
    (threading.Condition, "wait", _condition_wait),
    (threading.Event, "is_set", _event_is_set),
    (queue.Queue, "put", _queue_put),
    (queue.Queue, "get", _queue_get),
    (threading.Barrier, "wait", _barrier_wait),
    (threading.Barrier, "_enter", _barrier_enter),
    (threading.Barrier, "_release", _barrier_release),
    (threading.Thread, "start", _thread_start),
    (threading.Thread, "_bootstrap_inner", _thread_bootstrap),
    (threading.Thread, "join", _thread_join),
    (threading.Thread, "is_alive", _thread_is_alive),
    (concurrent.futures.thread._WorkItem, "__init__", _item_made),
    (concurrent.futures.thread._WorkItem, "run", _item_run),
    (asyncio.base_events.BaseEventLoop, "call_soon_threadsafe", _loop_call),
)


# -- on and off -----------------------------------------------------------------

_replaced: list[tuple[Any, str, Any, Any]] = runtime.keep("methods that hooks have replaced", [])


def install() -> None:
    """Replace the methods; the caller sees to it that this happens once until `remove`."""
    for owner, name, make in _METHODS:
        original = vars(owner).get(name)
        if original is None:
            continue
        replacement = make(original)
        setattr(owner, name, replacement)
        _replaced.append((owner, name, original, replacement))
    for module, name, kind in (
        (threading, "Lock", tracked.Lock),
        (threading, "RLock", tracked.RLock),
        (queue, "SimpleQueue", tracked.SimpleQueue),
    ):
        if module is queue and queue.SimpleQueue is not tracked.SIMPLE:
            continue  # one of conditions, which are seen
        _replaced.append((module, name, getattr(module, name), kind))
        setattr(module, name, kind)
    State.on = True


def remove() -> None:
    """Put the methods back, but for those that somebody has replaced since, which then do nothing more."""
    State.on = False
    while _replaced:
        owner, name, original, replacement = _replaced.pop()
        if vars(owner).get(name) is replacement:
            setattr(owner, name, original)
