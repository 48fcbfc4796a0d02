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

import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from .._runtime import State, runtime
from ._strict import strict as _strict

if TYPE_CHECKING:
    from . import Stream


class Key:
    """Marks the entries that a thread made; `retired` by a change of backend."""

    __slots__ = ("retired",)

    def __init__(self) -> None:
        self.retired = False


class Entry(NamedTuple):
    """One element of the stack; `below` links to the next."""

    key: Key  #: marks the thread that made the entry
    ordinal: int  #: device whose current stream the entry sets, -1 for none
    stream: Any  #: the stream, or None
    device: int  #: current device that the entry sets, -1 for none
    below: Any  #: the next entry of the stack, or None
    context: bool  #: True for a context: leaving it removes the entry and the settings above it
    #: True for cupy's use(), which the next context forgets, and for cupy's contexts, which
    #: undo nothing but the stream of their device.
    transient: bool
    restore: Any  #: top of the stack after leaving, or None
    label: str = ""  #: name the device was chosen by, "" for none (paddle)
    #: What the variable was set with, to reset it: a list of at most one token, which is good for one use.
    tokens: Any = ()

    def replaced(self, **fields: Any) -> Entry:
        """Return a copy with other values of some fields, which was not set yet."""
        return self._replace(tokens=(), **fields)


class Settings:
    """What a thread chose outside any context."""

    __slots__ = ("__weakref__", "device", "key", "streams", "transient")

    def __init__(self) -> None:
        # An object, not the thread's number: numbers are used again.
        self.key = Key()
        self.device: int | None = None
        self.streams: dict[int, Stream] = {}  # the current ones, by their devices
        self.transient: set[int] = set()  # devices whose current stream is forgotten by their next context (cupy)

    def reset(self) -> None:
        self.key.retired = True
        self.key = Key()
        self.device = None
        self.streams.clear()
        self.transient.clear()


class _Thread(threading.local):
    """Holds the calling thread's settings."""

    def __init__(self) -> None:
        self.own = Settings()
        of_process.threads.add(self.own)


class _Process(State):
    """What the process chose outside any context (paddle and mindspore), and every thread's settings."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, Stream] = {}
        self.label = ""
        self.blocking = False
        self.memory_limit = 0
        self.threads: WeakSet[Settings] = WeakSet()

    def reset(self) -> None:
        """Forget every choice, also those of other threads and of contexts that are entered."""
        for settings in list(self.threads):
            settings.reset()
        self.streams.clear()
        self.device = 0
        self.label = ""
        self.blocking = False
        self.memory_limit = 0

    def snapshot(self) -> tuple[Any, ...]:
        """Return the choices of the calling task, its thread and the process."""
        own = thread.own
        return (
            innermost.get(),
            (own.device, dict(own.streams), set(own.transient)),
            (self.device, self.label, dict(self.streams), self.blocking, self.memory_limit),
        )

    def restore(self, saved: tuple[Any, ...]) -> None:
        top, chosen, process = saved
        own = thread.own
        innermost.set(top)
        own.device, streams, transient = chosen
        own.streams.clear()
        own.streams.update(streams)
        own.transient.clear()
        own.transient.update(transient)
        self.device, self.label, streams, self.blocking, self.memory_limit = process
        self.streams.clear()
        self.streams.update(streams)


of_process = runtime.add("current", _Process())
innermost: ContextVar[Entry | None] = ContextVar("halstream_current", default=None)
thread = _Thread()


def in_task() -> bool:
    """Return True if the caller runs in an asyncio task."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        return asyncio.current_task() is not None
    except (RuntimeError, AttributeError):  # no event loop runs here; asyncio is being imported
        return False


def inside(top: Entry | None, key: Key) -> bool:
    """Return True if the innermost entries are this thread's and one of them is a context."""
    while top is not None and top.key is key:
        if top.context:
            return True
        top = top.below
    return False


def taken_out(top: Entry | None, left: Entry) -> Entry | None:
    """Return a stack without a context below its top and without what was set inside that."""
    above: list[Entry] = []
    entry = top
    while entry is not left:
        if entry is None:
            return top
        above.append(entry)
        entry = entry.below
    while above and not above[-1].context:
        above.pop()
    below: Entry | None = left.restore
    for entry in reversed(above):
        # What a later context restores must not bring the removed one back.
        restore = below if entry.restore is entry.below else taken_out(entry.restore, left)
        below = entry.replaced(below=below, restore=restore if entry.context else None)
    return below


def with_setting(
    top: Entry | None,
    ordinal: int,
    stream: Stream | None,
    device: int,
    transient: bool,
    label: str = "",
) -> Entry:
    """Return the stack with a setting above the innermost context.

    It replaces the setting of the same device there: a loop of `set_stream` in
    one context would otherwise grow the stack for ever.
    """
    key = thread.own.key
    kept = []
    below = top
    while below is not None and below.key is key and not below.context:
        if below.ordinal != ordinal:
            kept.append(below)
        elif below.device >= 0 and device < 0:
            kept.append(below.replaced(ordinal=-1, stream=None))
        else:
            label = label or below.label
        below = below.below
    for entry in reversed(kept):
        below = entry.replaced(below=below)
    return Entry(key, ordinal, stream, device, below, False, transient, None, label)


def without_settings(top: Entry | None, ordinal: int) -> Entry | None:
    """Return a task's stack without its settings of a device's stream (-1: of the current device)."""
    key = thread.own.key
    kept = []
    below = top
    while below is not None and below.key is key and not below.context:
        if ordinal < 0:
            entry = below.replaced(device=-1, label="")
        elif below.ordinal == ordinal:
            entry = below.replaced(ordinal=-1, stream=None)
        else:
            entry = below
        if entry.ordinal >= 0 or entry.device >= 0:
            kept.append(entry)
        below = below.below
    for entry in reversed(kept):
        below = entry.replaced(below=below)
    return below


_new = tuple.__new__


def current_device() -> int:
    """Return the ordinal of the calling task's current device."""
    own = thread.own
    key = own.key
    entry = innermost.get()
    while entry is not None:
        if entry.device >= 0 and entry.key is key:
            return entry.device
        entry = entry.below
    device = own.device
    return of_process.device if device is None else device


def current_stream(ordinal: int) -> Stream | None:
    """Return the stream that is current on a device, None for its default stream."""
    own = thread.own
    key = own.key
    entry = innermost.get()
    while entry is not None:
        if entry.ordinal == ordinal and entry.key is key:
            return entry.stream  # type: ignore[no-any-return]
        entry = entry.below
    found = own.streams.get(ordinal)
    return of_process.streams.get(ordinal) if found is None else found


def push(stream: Stream, ordinal: int, device: int) -> None:
    """Make a stream current on a device, and a device current (-1: none), until the matching `pop`."""
    top = innermost.get()
    tokens: list[Any] = []
    # Without the function that a NamedTuple has for it: this is in every `with`.
    tokens.append(
        innermost.set(_new(Entry, (thread.own.key, ordinal, stream, device, top, True, False, top, "", tokens)))
    )


def pop(stream: Stream | None) -> bool:
    """Leave the innermost context if it is this thread's and was entered with a stream (None: any)."""
    top = innermost.get()
    if (
        top is None
        or not top.context
        or (stream is not None and top.stream is not stream)
        or top.key is not thread.own.key
    ):
        return False
    if top.tokens:
        try:
            innermost.reset(top.tokens.pop())  # a value that is set anew takes four times as long
            return True
        except (ValueError, RuntimeError, IndexError):
            pass  # the context is another one than that which the entry was made in, or the token was used
    innermost.set(top.restore)
    return True


def process_device() -> tuple[int, str]:
    """Return the process-wide device and the label it was chosen by ('' = none)."""
    return of_process.device, of_process.label


def set_process_device(ordinal: int, label: str = "") -> None:
    """Choose the device of every thread that has not chosen its own."""
    of_process.device = ordinal
    of_process.label = label
    thread.own.device = None


def blocking() -> bool:
    """Return True if operations on tensors wait until they are done (mindspore)."""
    return of_process.blocking


def set_blocking(blocking: bool) -> None:
    """Choose whether operations on tensors wait until they are done."""
    of_process.blocking = blocking


def memory_limit() -> int:
    """Return how many bytes the process lets tensors of a device take, 0 for no limit."""
    return of_process.memory_limit


def set_memory_limit(nbytes: int) -> None:
    """Choose how many bytes tensors of a device may take."""
    of_process.memory_limit = nbytes


def device_label() -> str:
    """Return the label of the innermost choice of a device that has one, '' for none."""
    entry = innermost.get()
    key = thread.own.key
    while entry is not None:
        if entry.label and entry.key is key:
            return entry.label
        entry = entry.below
    return of_process.label


def choose_device(ordinal: int, label: str) -> None:
    """Choose the device of the innermost context if a context chose one, else the process's."""
    top = entry = innermost.get()
    key = thread.own.key
    in_context = inside(top, key)
    while in_context and entry is not None:
        if entry.device >= 0 and entry.key is key:
            innermost.set(with_setting(top, -1, None, ordinal, False, label))
            return
        entry = entry.below
    if top is not None and not in_context:
        innermost.set(without_settings(top, -1))
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
    top = innermost.get()
    restore = _without_transient(top, ordinal)
    innermost.set(Entry(thread.own.key, ordinal, stream, device, top, True, True, restore))


def enter_device(ordinal: int, label: str = "") -> None:
    """Make a device current until the matching `leave`; its streams stay as they are."""
    top = innermost.get()
    innermost.set(Entry(thread.own.key, -1, None, ordinal, top, True, False, top, label))


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
            of_process.streams.pop(ordinal, None)
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
        top = innermost.get()
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
    top = innermost.get()
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
    key = thread.own.key
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
        innermost.set(taken_out(top, left))
        return False
    innermost.set(left.restore)
    if left.transient:
        for setting in reversed(above):
            _set_again(setting, left)
    return True


def set_device(ordinal: int) -> None:
    """Change the current device; undone when the innermost context, or else the task, ends."""
    top = innermost.get()
    own = thread.own
    if (top is not None and top.key is own.key) or in_task():
        innermost.set(with_setting(top, -1, None, ordinal, False))
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
    top = innermost.get()
    own = thread.own
    if process and not inside(top, own.key):
        if top is not None:
            innermost.set(without_settings(top, ordinal))
    elif (top is not None and top.key is own.key) or in_task():
        device = ordinal if switch_device else -1
        innermost.set(with_setting(top, ordinal, stream, device, transient))
        return
    if transient:
        own.transient.add(ordinal)
    else:
        own.transient.discard(ordinal)
    if process:
        of_process.streams[ordinal] = stream
        own.streams.pop(ordinal, None)
    else:
        own.streams[ordinal] = stream
    if switch_device:
        own.device = ordinal


def reset() -> None:
    """Forget every choice of this task, of every thread and of the process."""
    of_process.reset()


def _without_transient(top: Entry | None, ordinal: int) -> Entry | None:
    """Return the stack without what transient settings made current on a device.

    What contexts set stays. A transient setting outside any context is forgotten
    at once, for the context about to begin hides it anyway.
    """
    own = thread.own
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
    chosen = own.streams.get(ordinal) or of_process.streams.get(ordinal)
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
    top = innermost.get()
    if top is not None and top.key is thread.own.key:
        innermost.set(with_setting(top, setting.ordinal, setting.stream, -1, setting.transient))
    elif setting.stream is not None:
        set_stream(setting.stream, False, ordinal=setting.ordinal, transient=setting.transient)
    else:
        thread.own.streams.pop(setting.ordinal, None)
        thread.own.transient.discard(setting.ordinal)
