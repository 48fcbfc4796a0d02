"""Pooled streams: rings of streams that are given out in turn, as in torch.

There is one ring for each device and priority. Its streams are non-blocking,
are made at their first use, and the runtime never closes them. Two requests that
are a whole ring apart share a stream, as on the real device: that two pooled
streams are independent is a hint, never a promise.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator

from .. import _native
from .._core._base import NON_BLOCKING
from .._core._device import Device
from .._runtime import Owner, State, runtime

__all__ = ["SIZE", "take"]

SIZE = 32


class _Ring:
    """The streams of one device and priority, and the position of the next one."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.turn: Iterator[int] = itertools.count()
        self.streams: dict[int, Owner] = {}


class _Rings(State):
    """One ring for each device and priority."""

    def __init__(self) -> None:
        self.rings: dict[tuple[int, int], _Ring] = {}

    def reset(self) -> None:
        self.rings.clear()

    def kept(self) -> Iterator[Owner]:
        for ring in list(self.rings.values()):
            yield from list(ring.streams.values())

    def snapshot(self) -> dict[tuple[int, int], int]:
        """Return the position of the next stream in each ring."""
        turns = {}
        for key, ring in list(self.rings.items()):
            turns[key] = turn = next(ring.turn)
            ring.turn = itertools.count(turn)
        return turns

    def restore(self, saved: dict[tuple[int, int], int]) -> None:
        for key, ring in list(self.rings.items()):
            ring.turn = itertools.count(saved.get(key, 0))

    def begin(self) -> None:
        self.restore({})


_rings = runtime.add("torch's stream rings", _Rings()).rings


def take(ordinal: int, priority: int) -> Owner:
    """Return the next stream of a ring and its owner; a reference to the owner keeps the stream alive.

    Parameters
    ----------
    ordinal : int
        Checked by the caller.
    priority : int
        Clamped to the device's range; lower is more urgent.

    Raises
    ------
    HalError
        In the core's class of its kind.
    """
    try:
        ring = _rings.get((ordinal, priority)) if type(priority) is int else None
        if ring is None:
            least, greatest = Device(ordinal).priority_range
            level = min(least, max(greatest, operator.index(priority)))
            ring = _rings.setdefault((ordinal, level), _Ring(level))
        # One step of an iterator and one setdefault: threads need no lock here.
        slot = next(ring.turn) % SIZE
        owner = ring.streams.get(slot)
        if owner is not None and not _native.is_open(owner.ident):
            # The program closed the shared stream: its position is free again.
            ring.streams.pop(slot, None)
            owner = None
        if owner is None:
            made = Owner(_native.stream_new(ordinal, ring.priority, NON_BLOCKING, 0))
            owner = ring.streams.setdefault(slot, made)
    except RuntimeError as exc:
        raise _native.error(exc) from None
    return owner
