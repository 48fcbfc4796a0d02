"""Current device and current stream, one stack for every dialect.

The stack is a linked list of immutable entries in a context variable, so each
asyncio task has its own; an entry counts only on the thread that made it, so a
context that was copied to another thread starts there from the defaults. Below
the stack lie the thread's own settings and below those the process's.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from . import Stream


class _Thread(threading.local):
    """What a thread chose outside any context."""

    def __init__(self) -> None:
        # An object, not the thread's number: numbers are used again.
        self.key = object()
        self.device: int | None = None
        self.streams: dict[int, Stream] = {}
        self.soft: set[int] = set()  # devices whose entry in `streams` is soft


class _Process:
    """What the process chose outside any context (paddle and mindspore)."""

    device = 0
    label = ""
    streams: ClassVar[dict[int, Stream]] = {}
    blocking = False
    memory_limit = 0


class _Entry(NamedTuple):
    key: object
    ordinal: int  # device whose current stream the entry sets, -1 for none
    stream: Stream | None
    device: int  # current device the entry sets, -1 for none
    below: _Entry | None
    leaves: bool  # True when leaving a context removes the entry and all above it
    # True for cupy's use(), which the next context forgets, and for cupy's
    # contexts, which undo nothing but the stream of their device.
    soft: bool
    restore: _Entry | None  # top of the stack after leaving
    label: str = ""  # name the device was chosen by, "" for none (paddle)


_top: ContextVar[_Entry | None] = ContextVar("halstream_current", default=None)
_thread = _Thread()
_process = _Process()
# Building the tuple directly costs half of what the class's constructor does.
_make = tuple.__new__


def current_device() -> int:
    """Return the ordinal of the calling task's current device."""
    entry = _top.get()
    thread = _thread
    if entry is not None:
        key = thread.key
        while entry is not None:
            if entry[3] >= 0 and entry[0] is key:
                return entry[3]
            entry = entry[4]
    device = thread.device
    return _process.device if device is None else device


def current_stream(ordinal: int) -> Stream | None:
    """Return the stream that is current on a device, None for its default stream."""
    entry = _top.get()
    thread = _thread
    if entry is not None:
        key = thread.key
        while entry is not None:
            if entry[1] == ordinal and entry[0] is key:
                return entry[2]
            entry = entry[4]
    return thread.streams.get(ordinal) or _process.streams.get(ordinal)


def process_device() -> tuple[int, str]:
    """Return the process-wide device and the label it was chosen by ('' = none)."""
    return _process.device, _process.label


def set_process_device(ordinal: int, label: str = "") -> None:
    """Choose the device of every thread that has not chosen its own."""
    _process.device = ordinal
    _process.label = label
    _thread.device = None


def blocking() -> bool:
    """Return True if operations on tensors wait until they are done (mindspore)."""
    return _process.blocking


def set_blocking(blocking: bool) -> None:
    """Choose whether operations on tensors wait until they are done."""
    _process.blocking = blocking


def memory_limit() -> int:
    """Return how many bytes the process lets tensors of a device take, 0 for no limit."""
    return _process.memory_limit


def set_memory_limit(nbytes: int) -> None:
    """Choose how many bytes tensors of a device may take."""
    _process.memory_limit = nbytes


def device_label() -> str:
    """Return the label of the innermost choice of a device that has one, '' for none."""
    entry = _top.get()
    key = _thread.key
    while entry is not None:
        if entry.label and entry.key is key:
            return entry.label
        entry = entry.below
    return _process.label


def choose_device(ordinal: int, label: str) -> None:
    """Choose the device of the innermost context if a context chose one, else the process's."""
    top = entry = _top.get()
    key = _thread.key
    while top is not None and top.key is key and entry is not None:
        if entry.device >= 0 and entry.key is key:
            _replace(top, -1, None, ordinal, soft=False, label=label)
            return
        entry = entry.below
    set_process_device(ordinal, label)


def enter(
    stream: Stream,
    switch_device: bool = True,
    *,
    ordinal: int | None = None,
    forget_soft: bool = False,
) -> None:
    """Make `stream` current until the matching `leave`.

    `ordinal` is the device whose current stream it becomes, None for its own.
    With `forget_soft`, leaving returns to what the nearest context of that
    device set, as if no soft `set_stream` had happened since (cupy), and keeps
    what was set inside for other devices.
    """
    top = _top.get()
    if ordinal is None:
        ordinal = stream._ordinal
    restore = _hide_soft(top, ordinal) if forget_soft else top
    _top.set(
        _make(
            _Entry,
            (
                _thread.key,
                ordinal,
                stream,
                ordinal if switch_device else -1,
                top,
                True,
                forget_soft,
                restore,
                "",
            ),
        )
    )


def enter_device(ordinal: int, label: str = "") -> None:
    """Make a device current until the matching `leave`; its streams stay as they are."""
    top = _top.get()
    _top.set(_Entry(_thread.key, -1, None, ordinal, top, True, False, top, label))


def leave() -> None:
    """End the innermost context of this thread and restore what stood before it.

    Raises
    ------
    IndexError
        If this thread is in no context.
    """
    top = entry = _top.get()
    key = _thread.key
    while entry is not None and entry[0] is key:
        if entry[5]:
            _top.set(entry[7])
            if entry[6] and entry is not top:
                _set_again(top, entry)
            return
        entry = entry[4]
    raise IndexError("leaving a stream context that this thread has not entered")


def leave_device() -> None:
    """End a context that set only the device; streams made current inside it stay.

    Raises
    ------
    IndexError
        If this thread is in no context.
    """
    entry = _top.get()
    key = _thread.key
    kept = []
    while entry is not None and entry[0] is key and not entry[5]:
        if entry.ordinal >= 0:
            kept.append(entry)
        entry = entry[4]
    leave()
    for entry in reversed(kept):
        _set_stream_again(entry)


def set_device(ordinal: int) -> None:
    """Change the current device; undone when the innermost context ends."""
    top = _top.get()
    if top is not None and top[0] is _thread.key:
        _replace(top, -1, None, ordinal, soft=False)
    else:
        _thread.device = ordinal


def set_stream(
    stream: Stream,
    switch_device: bool = True,
    *,
    ordinal: int | None = None,
    process: bool = False,
    soft: bool = False,
) -> None:
    """Change the current stream of the stream's device.

    Inside a context the change is undone when the innermost context ends.
    Outside, it holds for the thread, or with `process` for every thread that
    has not set its own. `ordinal` is the device whose current stream it
    becomes, None for its own.
    """
    if ordinal is None:
        ordinal = stream._ordinal
    top = _top.get()
    if top is not None and top[0] is _thread.key:
        _replace(top, ordinal, stream, ordinal if switch_device else -1, soft=soft)
        return
    if soft:
        _thread.soft.add(ordinal)
    else:
        _thread.soft.discard(ordinal)
    if process:
        _process.streams[ordinal] = stream
        _thread.streams.pop(ordinal, None)
    else:
        _thread.streams[ordinal] = stream
    if switch_device:
        _thread.device = ordinal


def reset() -> None:
    """Forget every choice of this task, this thread and the process (change of backend)."""
    _top.set(None)
    _thread.streams.clear()
    _thread.soft.clear()
    _thread.device = None
    _process.streams.clear()
    _process.device = 0
    _process.label = ""
    _process.blocking = False
    _process.memory_limit = 0


def _replace(
    top: _Entry | None,
    ordinal: int,
    stream: Stream | None,
    device: int,
    *,
    soft: bool,
    label: str = "",
) -> None:
    """Put a setting above the innermost context."""
    _top.set(_replaced(top, ordinal, stream, device, soft, label))


def _replaced(
    top: _Entry | None,
    ordinal: int,
    stream: Stream | None,
    device: int,
    soft: bool,
    label: str = "",
) -> _Entry:
    """Return the stack with a setting above the innermost context, in place of the one it supersedes.

    Without the second half a loop of `set_stream` in one context would grow
    the stack for ever.
    """
    key = _thread.key
    kept = []
    below = top
    while below is not None and below[0] is key and not below[5]:
        if below[1] != ordinal:
            kept.append(below)
        elif below[3] >= 0 and device < 0:
            kept.append(below._replace(ordinal=-1, stream=None))
        else:
            label = label or below.label
        below = below[4]
    for entry in reversed(kept):
        below = entry._replace(below=below)
    return _Entry(key, ordinal, stream, device, below, False, soft, None, label)


def _hide_soft(top: _Entry | None, ordinal: int) -> _Entry | None:
    """Return the stack without what soft settings made current on a device.

    What contexts set stays. A soft setting outside any context is forgotten
    at once, for the context about to begin hides it anyway.
    """
    thread = _thread
    key = thread.key
    found = False
    entry = top
    while entry is not None:
        if entry[1] == ordinal and entry[0] is key:
            if entry[5] or not entry[6]:
                break
            found = True
        entry = entry[4]
    if entry is None and ordinal in thread.soft:
        thread.soft.discard(ordinal)
        thread.streams.pop(ordinal, None)
    if not found:
        return top
    chosen = thread.streams.get(ordinal) or _process.streams.get(ordinal)
    stream = chosen if entry is None else entry[2]
    return _replaced(top, ordinal, stream, -1, False)


def _set_again(top: _Entry | None, left: _Entry) -> None:
    """Set anew what was set inside a context that is no part of what the context chose."""
    inside = []
    while top is not None and top is not left:
        inside.append(top)
        top = top[4]
    for entry in reversed(inside):
        if entry.ordinal >= 0 and entry.ordinal != left.ordinal:
            _set_stream_again(entry)
        if entry.device >= 0:
            set_device(entry.device)


def _set_stream_again(entry: _Entry) -> None:
    """Set the stream of an entry anew; one without a stream hides what stands below it."""
    top = _top.get()
    if top is not None and top[0] is _thread.key:
        _top.set(_replaced(top, entry.ordinal, entry.stream, -1, entry.soft))
    elif entry.stream is not None:
        set_stream(entry.stream, False, ordinal=entry.ordinal, soft=entry.soft)
    else:
        _thread.streams.pop(entry.ordinal, None)
        _thread.soft.discard(entry.ordinal)
