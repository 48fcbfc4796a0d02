"""Current device and current stream, one stack for every dialect.

The stack is a linked list of immutable entries in a context variable, so each
asyncio task has its own; an entry counts only on the thread that made it, so a
context that was copied to another thread starts there from the defaults. Below
the stack lie the thread's own settings and below those the process's.

An entry is either a context (`with`), which lasts until it is left, or a setting
(`set_stream`), which lasts until the context below it is left. A setting below
all contexts is a task's own: it is made by `set_stream` inside an asyncio task,
and ends with the task. On a thread that runs no task the same call changes the
thread's settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _stack
from ._stack import Entry, in_task, inside, taken_out, with_setting, without_settings
from ._strict import strict as _strict

if TYPE_CHECKING:
    from . import Stream


_top = _stack.innermost
_thread = _stack.thread
_process = _stack.process
_new = tuple.__new__


def current_device() -> int:
    """Return the ordinal of the calling task's current device."""
    own = _thread.own
    key = own.key
    entry = _top.get()
    while entry is not None:
        if entry.device >= 0 and entry.key is key:
            return entry.device
        entry = entry.below
    device = own.device
    return _process.device if device is None else device


def current_stream(ordinal: int) -> Stream | None:
    """Return the stream that is current on a device, None for its default stream."""
    own = _thread.own
    key = own.key
    entry = _top.get()
    while entry is not None:
        if entry.ordinal == ordinal and entry.key is key:
            return entry.stream  # type: ignore[no-any-return]
        entry = entry.below
    found = own.streams.get(ordinal)
    return _process.streams.get(ordinal) if found is None else found


def push(stream: Stream, ordinal: int, device: int) -> None:
    """Make a stream current on a device, and a device current (-1: none), until the matching `pop`."""
    top = _top.get()
    tokens: list[Any] = []
    # Without the function that a NamedTuple has for it: this is in every `with`.
    tokens.append(_top.set(_new(Entry, (_thread.own.key, ordinal, stream, device, top, True, False, top, "", tokens))))


def pop(stream: Stream | None) -> bool:
    """Leave the innermost context if it is this thread's and was entered with a stream (None: any)."""
    top = _top.get()
    if (
        top is None
        or not top.context
        or (stream is not None and top.stream is not stream)
        or top.key is not _thread.own.key
    ):
        return False
    if top.tokens:
        try:
            _top.reset(top.tokens.pop())  # a value that is set anew takes four times as long
            return True
        except (ValueError, RuntimeError, IndexError):
            pass  # the context is another one than that which the entry was made in, or the token was used
    _top.set(top.restore)
    return True


def process_device() -> tuple[int, str]:
    """Return the process-wide device and the label it was chosen by ('' = none)."""
    return _process.device, _process.label


def set_process_device(ordinal: int, label: str = "") -> None:
    """Choose the device of every thread that has not chosen its own."""
    _process.device = ordinal
    _process.label = label
    _thread.own.device = None


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
    key = _thread.own.key
    while entry is not None:
        if entry.label and entry.key is key:
            return entry.label
        entry = entry.below
    return _process.label


def choose_device(ordinal: int, label: str) -> None:
    """Choose the device of the innermost context if a context chose one, else the process's."""
    top = entry = _top.get()
    key = _thread.own.key
    in_context = inside(top, key)
    while in_context and entry is not None:
        if entry.device >= 0 and entry.key is key:
            _top.set(with_setting(top, -1, None, ordinal, False, label))
            return
        entry = entry.below
    if top is not None and not in_context:
        _top.set(without_settings(top, -1))
    set_process_device(ordinal, label)


def enter(
    stream: Stream,
    switch_device: bool = True,
    *,
    ordinal: int | None = None,
    forget_transient: bool = False,
) -> None:
    """Make `stream` current until the matching `leave`.

    Parameters
    ----------
    stream : Stream
    switch_device : bool
        True also makes the stream's device current.
    ordinal : int or None
        The device whose current stream it becomes; None is its own.
    forget_transient : bool
        True: leaving returns to what the nearest context of that device set,
        as if no transient `set_stream` had happened since, and keeps what was set
        inside for other devices (cupy).
    """
    if ordinal is None:
        ordinal = stream._ordinal
    device = ordinal if switch_device else -1
    if not forget_transient:
        push(stream, ordinal, device)
        return
    top = _top.get()
    restore = _without_transient(top, ordinal)
    _top.set(Entry(_thread.own.key, ordinal, stream, device, top, True, True, restore))


def enter_device(ordinal: int, label: str = "") -> None:
    """Make a device current until the matching `leave`; its streams stay as they are."""
    top = _top.get()
    _top.set(Entry(_thread.own.key, -1, None, ordinal, top, True, False, top, label))


class GuardScope:
    """How far a guard of paddle or mindspore reaches: its task, in strict mode the process.

    Strict mode has the real packages' scope: every thread sees the guard's
    stream, and leaving makes the stream current again that was so before,
    whatever other threads have set meanwhile.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        # For each time it was entered and not left: None in the scope of the
        # task, else the device and its current stream of before.
        self._before: list[tuple[int, Stream | None] | None] = []

    def enter(self, stream: Stream) -> None:
        """Make a stream current until `leave`."""
        if not _strict.enabled:
            push(stream, stream._ordinal, -1)
            self._before.append(None)
            return
        ordinal = stream._ordinal
        before = ordinal, current_stream(ordinal)
        set_stream(stream, False, process=True)
        self._before.append(before)

    def leave(self, stream: Stream) -> None:
        """End what the latest `enter` began, which was given the same stream."""
        before = self._before.pop() if self._before else None
        if before is None:
            leave(stream)
            return
        ordinal, previous = before
        if previous is None:
            _process.streams.pop(ordinal, None)
        else:
            set_stream(previous, False, ordinal=ordinal, process=True)


def leave(stream: Stream | None = None, *, device: int | None = None) -> None:
    """End a context of this thread and restore what stood before it.

    Contexts of generators may end in another order than they began in. Then the
    context is taken out of the stack together with what was set inside it, and
    those that began later stay as they are.

    Parameters
    ----------
    stream : Stream or None
        End the innermost context that was entered with this stream.
    device : int or None
        End the innermost context of `enter_device` with this ordinal. Without
        either, end the innermost context.

    Raises
    ------
    IndexError
        If this thread is in no such context.
    """
    if device is not None or not pop(stream):
        top = _top.get()
        _leave_entry(top, _find(top, stream, device))


def leave_device(ordinal: int | None = None) -> None:
    """End a context of `enter_device`; streams made current inside it stay.

    Parameters
    ----------
    ordinal : int or None
        End the innermost context of this device; None ends the innermost one.

    Raises
    ------
    IndexError
        If this thread is in no such context.
    """
    top = _top.get()
    left = _find(top, None, ordinal)
    kept = []
    entry = top
    while entry is not None and entry is not left:
        if entry.ordinal >= 0:
            kept.append(entry)
        entry = entry.below
    if _leave_entry(top, left):
        for setting in reversed(kept):
            _set_stream_again(setting)


def _find(top: Entry | None, stream: Stream | None, device: int | None) -> Entry:
    """Return the innermost context of this thread that was entered with a stream or a device."""
    key = _thread.own.key
    entry = top
    while entry is not None:
        if entry.context and (entry.key is key or entry.key.retired):
            if stream is not None:
                if entry.stream is stream:
                    return entry
            elif device is None or (entry.stream is None and entry.device == device):
                return entry
        entry = entry.below
    raise IndexError("leaving a stream context that this thread has not entered")


def _leave_entry(top: Entry | None, left: Entry) -> bool:
    """Remove a context and what was set inside it; True if it was the innermost one."""
    above: list[Entry] = []
    entry = top
    while entry is not None and entry is not left:
        above.append(entry)
        entry = entry.below
    if any(entry.context for entry in above):
        _top.set(taken_out(top, left))
        return False
    _top.set(left.restore)
    if left.transient:
        for setting in reversed(above):
            _set_again(setting, left)
    return True


def set_device(ordinal: int) -> None:
    """Change the current device; undone when the innermost context, or else the task, ends."""
    top = _top.get()
    own = _thread.own
    if (top is not None and top.key is own.key) or in_task():
        _top.set(with_setting(top, -1, None, ordinal, False))
    else:
        own.device = ordinal


def set_stream(
    stream: Stream,
    switch_device: bool = True,
    *,
    ordinal: int | None = None,
    process: bool = False,
    transient: bool = False,
) -> None:
    """Change the current stream of the stream's device.

    Inside a context the change is undone when the innermost context ends.
    Outside, it holds for the asyncio task, or else for the thread.

    Parameters
    ----------
    stream : Stream
    switch_device : bool
        True also makes the stream's device current.
    ordinal : int or None
        The device whose current stream it becomes; None is its own.
    process : bool
        True: outside a context, the change holds for every task and thread
        that has not set its own (paddle and mindspore).
    transient : bool
        True: the next context of the device forgets the change (cupy).
    """
    if ordinal is None:
        ordinal = stream._ordinal
    top = _top.get()
    own = _thread.own
    if process and not inside(top, own.key):
        if top is not None:
            _top.set(without_settings(top, ordinal))
    elif (top is not None and top.key is own.key) or in_task():
        device = ordinal if switch_device else -1
        _top.set(with_setting(top, ordinal, stream, device, transient))
        return
    if transient:
        own.transient.add(ordinal)
    else:
        own.transient.discard(ordinal)
    if process:
        _process.streams[ordinal] = stream
        own.streams.pop(ordinal, None)
    else:
        own.streams[ordinal] = stream
    if switch_device:
        own.device = ordinal


def reset() -> None:
    """Forget every choice of this task, of every thread and of the process."""
    _process.reset()


def _without_transient(top: Entry | None, ordinal: int) -> Entry | None:
    """Return the stack without what transient settings made current on a device.

    What contexts set stays. A transient setting outside any context is forgotten
    at once, for the context about to begin hides it anyway.
    """
    own = _thread.own
    key = own.key
    found = False
    entry = top
    while entry is not None:
        if entry.ordinal == ordinal and entry.key is key:
            if entry.context or not entry.transient:
                break
            found = True
        entry = entry.below
    if entry is None and ordinal in own.transient:
        own.transient.discard(ordinal)
        own.streams.pop(ordinal, None)
    if not found:
        return top
    chosen = own.streams.get(ordinal) or _process.streams.get(ordinal)
    stream = chosen if entry is None else entry.stream
    return with_setting(top, ordinal, stream, -1, False)


def _set_again(setting: Entry, left: Entry) -> None:
    """Repeat a setting that was made inside a context of another device's stream."""
    if setting.ordinal >= 0 and setting.ordinal != left.ordinal:
        _set_stream_again(setting)
    if setting.device >= 0:
        set_device(setting.device)


def _set_stream_again(setting: Entry) -> None:
    """Repeat the stream of a setting; one without a stream hides what stands below it."""
    top = _top.get()
    if top is not None and top.key is _thread.own.key:
        _top.set(with_setting(top, setting.ordinal, setting.stream, -1, setting.transient))
    elif setting.stream is not None:
        set_stream(setting.stream, False, ordinal=setting.ordinal, transient=setting.transient)
    else:
        _thread.own.streams.pop(setting.ordinal, None)
        _thread.own.transient.discard(setting.ordinal)
