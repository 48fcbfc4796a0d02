"""The stack that holds the current device and the current streams: its entries and its state.

`_current` has the calls that read and change it.
"""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from .._runtime import State, runtime

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
        process.threads.add(self.own)


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


process = runtime.add("current", _Process())
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
    below = left.restore
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
