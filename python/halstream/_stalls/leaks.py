"""What a program made and did not give up: streams, events, memory, gates, unfinished work.

What is alive is known only from the moment on when `tracking` or `snapshot` was
first called. With ``HALSTREAM_LEAKS=1`` in the environment that is the start of
the runtime, and what is left is told on stderr when the program ends.
"""

from __future__ import annotations

import atexit
import gc
import sys
import threading
from typing import NamedTuple

from .. import _native, _sites
from .._core import _base
from .._errors import HalError
from .._records import BusyRecord, decode

__all__ = ["Snapshot", "at_exit", "report", "snapshot", "stop", "tracking"]

_lock = threading.Lock()
_handle = 0

# What the runtime makes for itself, by file and function of the call. Pooled
# streams belong to their ring, which never closes them.
_OWN = (("_context.py", "aside"), ("_stream_rings.py", "take"))


class _Life(NamedTuple):
    """Something that is alive."""

    kind: str
    device: int
    number: int
    size: int
    id: int
    site: int


class Snapshot(NamedTuple):
    """What was alive at a moment."""

    lives: frozenset[tuple[str, int, int, int]]
    work: frozenset[tuple[str, str]]


def tracking() -> None:
    """Note from now on what is made, and where. Calling again does nothing."""
    global _handle
    with _lock:
        if not _handle:
            _native.positions(1)
            _handle = int(_native.leaks_start())


def stop() -> None:
    """Undo `tracking` and forget."""
    global _handle
    with _lock:
        if _handle:
            _native.leaks_stop(_handle)
            _native.positions(-1)
            _handle = 0


def snapshot() -> Snapshot:
    """Return what is alive now, for `report`. Begins the tracking if need be."""
    tracking()
    _settle()
    return Snapshot(frozenset(_key(life) for life in _lives()), frozenset(_work()))


def report(since: Snapshot | None = None) -> list[str]:
    """Return what is alive, a line each with the place that made it.

    Parameters
    ----------
    since : Snapshot or None
        Leave out what was alive then; None leaves out nothing.

    Returns
    -------
    list of str
        Streams, events, memory and gates in the order in which they were made,
        then the streams with unfinished work. Default streams are not in it, nor
        what the runtime made for itself.
    """
    tracking()
    _settle()
    known, worked = since or Snapshot(frozenset(), frozenset())
    lines = [_text(life) for life in _lives() if _key(life) not in known]
    return lines + [text for title, text in _work() if (title, text) not in worked]


def at_exit() -> None:
    """Track from now on, and tell on stderr what is left when the program ends."""
    tracking()
    atexit.register(_tell)


def _tell() -> None:
    try:
        lines = report()
    except HalError:
        return  # a forked child, or the runtime has ended
    if lines:
        print(f"halstream: {len(lines)} thing(s) left at the end of the program", file=sys.stderr)
        for line in lines:
            print("  " + line, file=sys.stderr)


def _settle() -> None:
    """Let go of what nobody has any more."""
    gc.collect()
    _base.drain()


def _key(life: _Life) -> tuple[str, int, int, int]:
    return life.kind, life.device, life.number, life.id


def _lives() -> list[_Life]:
    found = []
    for fields in decode(_native.leaks_take(_handle)):
        life = _Life(**{name.lower(): value for name, value in fields.items()})
        if not _internal(life.site):
            found.append(life)
    return found


def _work() -> list[tuple[str, str]]:
    """Return the title of each stream with unfinished work, and a line about it."""
    found = []
    streams: list[BusyRecord] = decode(_native.stall_graph())
    for one in streams:
        title, head = one["title"], one["head"]
        text = f"unfinished work: {title} has {one['pending']} operation(s) pending; the first is {head}"
        found.append((title, text + _from(one["site"], ", from ")))
    return found


def _text(life: _Life) -> str:
    if life.kind == "stream":
        name = f"stream {life.number} of device {life.device}"
    elif life.kind == "memory":
        kind, _, _, ordinal = str(_native.mem_lookup(life.number)).split()
        where = f"of device {ordinal}" if kind == "2" else "of pinned memory"
        name = f"{life.size} bytes {where} at {life.number:#x}"
    else:
        name = f"{life.kind} {life.number}" + (", which is closed" if life.kind == "gate" else "")
    return name + _from(life.site, ", made at ")


def _from(site: int, words: str) -> str:
    line = _sites.site_line(site)
    return words + line if line else ""


def _internal(site: int) -> bool:
    """Return True for what the runtime made for itself."""
    for path, _, function in _sites.stack(site):
        if not _sites.is_own(path):
            return False
        name = function.rpartition(".")[2]
        if any(path.endswith("/" + file) and name == own for file, own in _OWN):
            return True
    return False
