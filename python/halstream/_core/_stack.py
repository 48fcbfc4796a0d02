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
from . import _handles

if TYPE_CHECKING:
    from . import Stream


class Key:
    """Marks the entries that a thread made; `retired` by a change of backend."""

    __slots__ = ("retired",)

    def __init__(self) -> None:
        self.retired = False


class Settings:
    """What a thread chose outside any context."""

    __slots__ = ("__weakref__", "device", "key", "streams", "transient")

    def __init__(self) -> None:
        # An object, not the thread's number: numbers are used again.
        self.key = Key()
        self.device: int | None = None
        self.streams: dict[int, Stream] = {}
        self.transient: set[int] = set()  # devices whose entry in `streams` is transient

    def reset(self) -> None:
        self.key.retired = True
        self.key = Key()
        _handles.forget()
        self.device = None
        self.streams.clear()
        self.transient.clear()


class _Thread(threading.local):
    """Holds the calling thread's settings."""

    def __init__(self) -> None:
        self.own = Settings()
        process.threads.add(self.own)


class Entry(NamedTuple):
    """One element of the stack; `below` links to the next."""

    key: Key
    ordinal: int  # device whose current stream the entry sets, -1 for none
    stream: Stream | None
    device: int  # current device the entry sets, -1 for none
    below: Entry | None
    context: bool  # True for a context: leaving it removes the entry and the settings above it
    # True for cupy's use(), which the next context forgets, and for cupy's
    # contexts, which undo nothing but the stream of their device.
    transient: bool
    restore: Entry | None  # top of the stack after leaving
    label: str = ""  # name the device was chosen by, "" for none (paddle)


class _Process(State):
    """What the process chose outside any context (paddle and mindspore), and every thread's settings."""

    def __init__(self) -> None:
        self.device = 0
        self.label = ""
        self.streams: dict[int, Stream] = {}
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
_handles.stack(innermost, Entry, lambda: thread.own, process)


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
    while top is not None and top[0] is key:
        if top[5]:
            return True
        top = top[4]
    return False


def taken_out(top: Entry | None, left: Entry) -> Entry | None:
    """Return a stack without a context below its top and without what was set inside that."""
    above: list[Entry] = []
    entry = top
    while entry is not left:
        if entry is None:
            return top
        above.append(entry)
        entry = entry[4]
    while above and not above[-1][5]:
        above.pop()
    below = left[7]
    for entry in reversed(above):
        # What a later context restores must not bring the removed one back.
        restore = below if entry[7] is entry[4] else taken_out(entry[7], left)
        below = entry._replace(below=below, restore=restore if entry[5] else None)
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
    return Entry(key, ordinal, stream, device, below, False, transient, None, label)


def without_settings(top: Entry | None, ordinal: int) -> Entry | None:
    """Return a task's stack without its settings of a device's stream (-1: of the current device)."""
    key = thread.own.key
    kept = []
    below = top
    while below is not None and below[0] is key and not below[5]:
        if ordinal < 0:
            entry = below._replace(device=-1, label="")
        elif below[1] == ordinal:
            entry = below._replace(ordinal=-1, stream=None)
        else:
            entry = below
        if entry[1] >= 0 or entry[3] >= 0:
            kept.append(entry)
        below = below[4]
    for entry in reversed(kept):
        below = entry._replace(below=below)
    return below
