"""What a program made and did not close or free: streams, events, memory, gates, unfinished work.

What is alive is known only from the moment on when `tracking` or `snapshot` was
first called. With ``HALSTREAM_LEAKS=1`` in the environment that is the start of
the runtime, and what is left is printed to stderr when the program ends; the
exit code is then 66 where it would be 0.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import sys
import threading
from typing import NamedTuple

from .. import _native, _sites
from .._core import _base
from .._core._exit import FOUND, exit_with
from .._core._lookup import DEVICE
from .._errors import HalError
from .._notes import explanation
from .._records import BlockRecord, BusyRecord, ObjectRecord, decode

__all__ = ["Snapshot", "at_exit", "report", "snapshot", "stop", "tracking"]

_lock = threading.Lock()
_handle = 0

# What the runtime makes for itself, by file and function of the call. Pooled
# streams belong to their ring, which never closes them.
_OWN = (("_context.py", "aside"), ("_stream_rings.py", "take"))


class Snapshot(NamedTuple):
    """What was alive at a moment."""

    objects: frozenset[tuple[str, int, int, int]]
    work: frozenset[tuple[str, str]]


def tracking() -> bool:
    """Note from now on what is made, and where; return False if that was so already."""
    global _handle
    with _lock:
        if _handle:
            return False
        _native.positions(1)
        _handle = int(_native.leaks_start())
        return True


def stop() -> None:
    """Undo `tracking` and forget."""
    global _handle
    with _lock:
        handle, _handle = _handle, 0
        if handle:
            with contextlib.suppress(HalError):  # of a backend that was replaced meanwhile
                _native.leaks_stop(handle)
            _native.positions(-1)


def snapshot() -> Snapshot:
    """Return what is alive now, for `report`. Begins the tracking if need be."""
    tracking()
    _settle()
    return Snapshot(frozenset(_key(one) for one in _alive()), frozenset(_work()))


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

    Raises
    ------
    TypeError
        If `since` is something else.
    """
    if since is not None and not isinstance(since, Snapshot):
        raise TypeError(f"leaks() takes a Snapshot or None, not {type(since).__name__}")
    tracking()
    _settle()
    known, worked = since or Snapshot(frozenset(), frozenset())
    lines = [_text(one) for one in _alive() if _key(one) not in known]
    return lines + [text for title, text in _work() if (title, text) not in worked]


def at_exit(code: int = FOUND) -> None:
    """Track from now on; when the program ends print what is left to stderr, and replace an exit code of 0."""
    tracking()
    atexit.register(_print, code)


def _print(code: int) -> None:
    try:
        lines = report()
    except HalError:
        return  # a forked child, or the runtime has ended
    if lines:
        exit_with(code)
        print(f"halstream: {len(lines)} thing(s) left at the end of the program", file=sys.stderr)
        for line in lines:
            print("  " + line, file=sys.stderr)
        print(explanation("leak"), file=sys.stderr)


def _settle() -> None:
    """Release what has no reference any more."""
    gc.collect()
    _base.drain()


def _key(one: ObjectRecord) -> tuple[str, int, int, int]:
    return one["kind"], one["device"], one["number"], one["id"]


def _alive() -> list[ObjectRecord]:
    """Return what is alive, without what the runtime made for itself."""
    found: list[ObjectRecord] = decode(_native.leaks_take(_handle))
    return [one for one in found if not _internal(one["site"])]


def _work() -> list[tuple[str, str]]:
    """Return the title of each stream with unfinished work, and a line about it."""
    found = []
    streams: list[BusyRecord] = decode(_native.stall_graph())
    for one in streams:
        title, head = one["title"], one["head"]
        text = f"unfinished work: {title} has {one['pending']} operation(s) pending; the first is {head}"
        found.append((title, text + _from(one["site"], ", from ")))
    return found


def _text(one: ObjectRecord) -> str:
    kind, number = one["kind"], one["number"]
    if kind == "stream":
        name = f"stream {number} of device {one['device']}"
    elif kind == "memory":
        block: BlockRecord = decode(_native.mem_lookup(number))
        where = f"of device {block['device']}" if block["kind"] == DEVICE else "of pinned memory"
        name = f"{one['size']} bytes {where} at {number:#x}"
    else:
        name = f"{kind} {number}" + (", which is closed" if kind == "gate" else "")
    return name + _from(one["site"], ", made at ")


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
