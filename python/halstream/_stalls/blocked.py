"""Determine from its innermost frame what a Python thread waits for.

Only waits without a time limit count, and only those that are certain from the
thread's own frame: `threading`'s, `queue`'s and `concurrent.futures`'
waits, and locks that the program takes itself. A thread of which nothing is
certain may go on at any time.
"""

from __future__ import annotations

import _thread
import builtins
import dis
import functools
import inspect
import os
import queue
import re
import selectors
import sys
import threading
from collections.abc import Iterator, Sequence
from types import BuiltinMethodType, CodeType, FrameType, MemberDescriptorType
from typing import Any, NamedTuple

from .. import _sites
from . import loops as _loops

__all__ = ["HOOKS", "UNKNOWN", "Block", "attribute", "blocked", "calling", "looking_loop", "thread_name"]

# Not by the names in `threading`: this module may be loaded while these stand for the hooks of a schedule.
_LOCK: Any = _thread.LockType
_RLOCK: Any = _thread.RLock
_SIMPLE: Any = queue.SimpleQueue
UNKNOWN: Any = object()

# Operations between a method and its call that change nothing about who is called.
_PLAIN = frozenset({"PRECALL", "PUSH_NULL", "CACHE", "KW_NAMES", "NOP", "RESUME", "COPY", "SWAP"})
_CALLS = frozenset({"CALL", "PRECALL", "CALL_METHOD", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_KW"})
_ENTERS = frozenset({"BEFORE_WITH", "SETUP_WITH"})
# Arguments with which a lock or a queue still waits for ever.
_WAITING = (True, ("block",), ("blocking",))


class Block(NamedTuple):
    """Why a thread does not go on by itself."""

    what: str  #: for "it ...", such as 'waits in Event.wait()'
    owner: int = 0  #: the one thread that can end it; 0: any other thread can
    idle: bool = False  #: it is an idle worker thread that waits for work
    lock: bool = False  #: it waits for a lock
    loop: Any = None  #: the event loop of `asyncio` that waits
    run: Any = None  #: the run of `trio` that waits


def blocked(frame: FrameType, ident: int) -> Block | None:
    """Return what a thread waits for with no limit; None if it may go on by itself.

    Parameters
    ----------
    frame : frame
        The innermost one of the thread, which is not the calling one.
    ident : int
        The thread.
    """
    code = frame.f_code
    if code is _WAIT:
        return _condition(frame)
    if code is _JOIN:
        names = _sites.variables(frame)
        limit = names.get("timeout", 0)
        if limit is None or (limit < 0 and names.get("block") is True):
            return _end_of(names.get("self"))
        return None
    if code.co_name == "select" and code.co_filename == selectors.__file__:
        loop = _loops.asyncio_waits(frame)
        return None if loop is None else event_loop(loop)
    if code.co_name == "get_events":
        run = _loops.trio_waits(frame)
        return None if run is None else trio_run(run)
    if code is _SHUTDOWN:
        # What the interpreter calls itself leaves nobody to whom an error could be raised.
        return Block("waits at the end of the program for its threads", idle=frame.f_back is None)
    if code is _pool_worker():
        return Block("is idle", idle=True) if _sites.variables(frame)["work_queue"].empty() else None
    if code.co_filename == "<frozen importlib._bootstrap>" and code.co_name == "acquire":
        lock = _sites.variables(frame).get("self")
        owner = getattr(lock, "owner", None)
        if type(owner) is int and owner != ident:
            return Block(f"waits for the import of {getattr(lock, 'name', 'a module')!r}", owner)
        return None
    if code.co_filename == _CONTROLLED_FILE and frame.f_back is not None and frame.f_back.f_code is _WAIT:
        return _condition(frame.f_back)
    if code.co_filename == _CONTROL_FILE:
        return _controlled(frame)
    if code.co_filename in HOOKS:
        module = _CONTROLLED if code.co_filename == _CONTROLLED_FILE else _TRACKED
        return _lock(sys.modules[module].raw_lock(frame), ident)
    return _lock(_taken(frame), ident)


def calling(function: Any, ident: int) -> Block | None:
    """Return the wait of a thread that is inside a call of a built-in function without arguments."""
    owner = getattr(function, "__self__", None)
    if not isinstance(function, BuiltinMethodType) or not _called(type(owner), function.__name__):
        return None
    return _lock(owner, ident)


def thread_name(ident: int) -> str:
    """Return a thread's name."""
    thread = getattr(threading, "_active", {}).get(ident)
    return f"thread {thread.name}" if thread is not None else f"thread {ident}"


def _condition(frame: FrameType) -> Block | None:
    """Return the wait of a `Condition`, which most waits of the library are in the end."""
    names = _sites.variables(frame)
    waiter, condition = names.get("waiter"), names.get("self")
    if names.get("timeout", 0) is not None or waiter not in getattr(condition, "_waiters", ()):
        return None  # it ends by itself, or was notified
    outer, inner = frame.f_back, frame
    while outer is not None and outer.f_code.co_filename in _LIBRARY and outer.f_code not in _THREAD:
        inner, outer = outer, outer.f_back
    waits = _sites.variables(inner).get("self", condition)
    return Block(f"waits in {type(waits).__name__}.{inner.f_code.co_name}()")


def _controlled(frame: FrameType) -> Block | None:
    """Return the wait of a thread that takes turns and has given its own away."""
    outer, member = frame.f_back, _sites.variables(frame).get("member")
    if frame.f_code.co_name != "_await" or outer is None or outer.f_code.co_name != "wait":
        return None  # it waits for its turn only
    if _sites.variables(outer).get("timeout", 0) is not None or getattr(member, "state", None) != "blocked":
        return None
    at: FrameType | None = outer
    while at is not None and at.f_code.co_filename in (_CONTROL_FILE, _CONTROLLED_FILE):
        at = at.f_back
    if at is not None and at.f_code is _WAIT:
        return _condition(at)
    return Block("waits for another thread")


def event_loop(loop: Any) -> Block:
    """Return the wait of a loop of asyncio that only another thread can wake."""
    place = _loops.place_in_asyncio(loop)
    return Block("waits in an event loop" + (f" (a task is at {place})" if place else ""), loop=loop)


def trio_run(run: Any) -> Block:
    """Return the wait of a run of trio that only another thread can wake."""
    place = _loops.place_in_trio(run)
    return Block("waits in a run of trio" + (f" (a task is at {place})" if place else ""), run=run)


def looking_loop(line: Any) -> Block | None:
    """Return what the event loop of a list of waits waits for, of which tasks look again and again.

    None if anything but a look of one of them may change that.
    """
    loop = getattr(line, "loop", None)
    if loop is not None:
        return event_loop(loop) if _loops.asyncio_is_over(loop, line.looking) else None
    run = line.task()._runner
    return trio_run(run) if _loops.trio_is_over(run, line.looking) else None


def _end_of(thread: Any) -> Block | None:
    if not isinstance(thread, threading.Thread) or not thread.ident:
        return None
    return Block(f"waits for the end of {thread_name(thread.ident)}", thread.ident)


def _lock(lock: Any, ident: int) -> Block | None:
    """Return the wait for a lock or a simple queue, if it is one that is taken, or empty."""
    if type(lock) is _LOCK:
        return Block("waits for a lock that is taken", lock=True) if lock.locked() else None
    if type(lock) is _RLOCK:
        owner = re.search(r"^<locked .* owner=(\d+)", repr(lock))
        if owner is None or int(owner[1]) in (0, ident):
            return None
        if int(owner[1]) not in sys._current_frames():
            return Block("waits for a lock that a thread took which has ended", lock=True)
        return Block(f"waits for a lock that {thread_name(int(owner[1]))} holds", int(owner[1]), lock=True)
    if isinstance(lock, _SIMPLE):
        return Block("waits in SimpleQueue.get()") if lock.empty() else None
    return None


class _Step(NamedTuple):
    """An instruction that touches at most one name."""

    offset: int
    opname: str
    arg: int | None
    argval: Any


@functools.lru_cache(maxsize=32)
def _steps(code: CodeType) -> tuple[_Step, ...]:
    return tuple(step for i in dis.get_instructions(code) if i.opname != "CACHE" for step in _single(i))


def _single(instruction: dis.Instruction) -> Iterator[_Step]:
    """Yield an instruction, or the two that CPython 3.13 and later have merged into it."""
    offset, name, value = instruction.offset, instruction.opname, instruction.argval
    if name == "BINARY_OP" and instruction.argrepr == "[]":  # CPython 3.14
        name = "BINARY_SUBSCR"
    first, merged, second = name.partition("_FAST_")
    borrow = name.removeprefix("LOAD_FAST_BORROW_")  # CPython 3.14
    if isinstance(value, tuple) and merged:
        second = "LOAD_FAST" if borrow != name else second
        yield _Step(offset, f"{first}_FAST", instruction.arg, value[0])
        yield _Step(offset, second, instruction.arg, value[1])
    else:
        yield _Step(offset, name, instruction.arg, value)


def _taken(frame: FrameType) -> Any:
    """Return the lock that the current instruction of a frame takes, or the queue it reads."""
    steps = _steps(frame.f_code)
    at = next((n for n, i in enumerate(steps) if i.offset == frame.f_lasti), -1)
    if at < 0:
        return UNKNOWN
    if steps[at].opname in _ENTERS:
        return _value(steps, at - 1, frame)[0]
    if steps[at].opname not in _CALLS:
        return UNKNOWN
    left = steps[at].arg or 0
    at -= 1
    while at >= 0:
        step = steps[at]
        value = frame.f_code.co_consts[step.arg or 0] if step.opname == "KW_NAMES" else step.argval
        if step.opname in ("KW_NAMES", "LOAD_CONST") and value in _WAITING:
            left -= value is True
        elif step.opname == "KW_NAMES" or step.opname not in _PLAIN:
            break
        at -= 1
    if at < 0 or left:
        return UNKNOWN  # it is called with something else
    if steps[at].opname == "LOAD_SPECIAL":  # CPython 3.14 looks up __exit__ and __enter__, then calls the latter
        while at >= 0 and steps[at].opname in _PLAIN | {"LOAD_SPECIAL"}:
            at -= 1
        return _value(steps, at, frame)[0]
    if steps[at].opname in ("LOAD_METHOD", "LOAD_ATTR"):
        owner = _value(steps, at - 1, frame)[0]
        if _called(type(owner), steps[at].argval):
            return owner
    method = _value(steps, at, frame)[0]
    if isinstance(method, BuiltinMethodType) and _called(type(method.__self__), method.__name__):
        return method.__self__
    return UNKNOWN


def _called(kind: type, method: str) -> bool:
    """Return True if a method waits as taking a lock does."""
    if kind is _SIMPLE:
        return method == "get"
    return kind in (_LOCK, _RLOCK) and method in ("acquire", "__enter__", "acquire_lock")


def _value(steps: Sequence[_Step], at: int, frame: FrameType) -> tuple[Any, int]:
    """Return the value that the instructions up to `at` left on top of the stack.

    And the index of the last one before them. Only names, attributes and
    elements are followed, without running any code of the program.
    """
    while at >= 0 and steps[at].opname in _PLAIN:
        at -= 1
    if at < 0:
        return UNKNOWN, at
    name, value = steps[at].opname, steps[at].argval
    if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return value, at - 1
    if name == "BINARY_SUBSCR":
        key, at = _value(steps, at - 1, frame)
        owner, at = _value(steps, at, frame)
        if type(owner) in (list, tuple, dict) and type(key) in (int, str):
            try:
                return owner[key], at
            except LookupError:
                pass
        return UNKNOWN, at
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        owner, at = _value(steps, at - 1, frame)
        return attribute(owner, value), at
    if not isinstance(value, str) or not name.startswith("LOAD_"):
        return UNKNOWN, at
    spaces = [frame.f_globals, vars(builtins)]
    if name != "LOAD_GLOBAL":
        spaces.insert(0, _sites.variables(frame))
    return next((space[value] for space in spaces if value in space), UNKNOWN), at - 1


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute; nothing of the program runs for it."""
    found = inspect.getattr_static(owner, name, UNKNOWN)
    if isinstance(found, MemberDescriptorType):  # a slot
        return getattr(owner, name, UNKNOWN)
    return found


def _pool_worker() -> CodeType | None:
    """Return the code that the threads of a `ThreadPoolExecutor` run."""
    module = sys.modules.get("concurrent.futures.thread")
    code: CodeType | None = getattr(getattr(module, "_worker", None), "__code__", None)
    return code


def _code(*names: str) -> CodeType | None:
    found: Any = threading
    for name in names:
        found = getattr(found, name, None)
    found = inspect.unwrap(found) if callable(found) else found  # the hooks of a sanitizer
    code: CodeType | None = getattr(found, "__code__", None)
    return code


#: The files of the hooks of a sanitizer, whose frames stand between those of the library.
_TRACKED = "halstream._checks.tracked"
_CONTROLLED = "halstream._schedules.threadlocks"
_CONTROLLED_FILE = f"{_sites.ROOT}_schedules{os.sep}threadlocks.py"
_CONTROL_FILE = f"{_sites.ROOT}_schedules{os.sep}control.py"
HOOKS = frozenset((*(f"{_sites.ROOT}_checks{os.sep}{name}.py" for name in ("hostorder", "tracked")), _CONTROLLED_FILE))
_WAIT = _code("Condition", "wait")
# Python 3.13 waits in the method itself.
_JOIN = _code("Thread", "_wait_for_tstate_lock") or _code("Thread", "join")
_SHUTDOWN = _code("_shutdown")
#: What a thread runs around its target.
_THREAD = (_code("Thread", "run"), _code("Thread", "_bootstrap_inner"), _code("Timer", "run"))
_LIBRARY = frozenset(
    path
    for path in (
        threading.__file__, queue.__file__, threading.__file__.replace("threading.py", "concurrent/futures/_base.py"),
        *HOOKS,
    )
)  # fmt: skip
