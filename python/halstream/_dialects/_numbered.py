"""Streams found by their small number, and those kept for communication and for transfers."""

from __future__ import annotations

from typing import TypeVar
from weakref import WeakValueDictionary

from .._core._base import Owner
from .._core._stream import Stream

S = TypeVar("S", bound=Stream)

# Numbers are never used again, so an entry that is gone stays gone.
_owners: WeakValueDictionary[tuple[int, int], Owner] = WeakValueDictionary()
_communication: dict[int, Stream] = {}
_transfers: dict[int, Stream] = {}


def remember(stream: Stream) -> None:
    """Let `find` find a stream for as long as an object of it is alive."""
    owner = stream._owner
    if owner is not None:
        _owners[stream._ordinal, stream.index] = owner


def find(cls: type[S], ordinal: int, number: int) -> S | None:
    """Return the remembered stream of a device with this number; None if there is none.

    Number 0 is the legacy default stream.
    """
    if number == 0:
        return cls._default(ordinal)
    owner = _owners.get((ordinal, number))
    if owner is None:
        return None
    new = cls.__new__(cls)
    new._attach(owner.ident, ordinal, owner)
    return new


def communication(cls: type[S], ordinal: int) -> S:
    """Return a new object for the one stream that a device keeps for communication."""
    stream = _communication.get(ordinal)
    if stream is None:
        # Of two threads that get here at once, one's stream is kept.
        stream = _communication.setdefault(ordinal, Stream(ordinal, non_blocking=True))
        remember(stream)
    new = cls.__new__(cls)
    new._attach(stream._id, ordinal, stream._owner)
    return new


def transfer(ordinal: int) -> Stream:
    """Return the stream on which the runtime brings contents from the host to a device.

    No work of the program is ever on it, so nothing that a program holds can
    hold these copies.
    """
    stream = _transfers.get(ordinal)
    if stream is None:
        stream = _transfers.setdefault(ordinal, Stream(ordinal, non_blocking=True))
    return stream


def forget() -> None:
    """Give the kept streams up (change of backend)."""
    _communication.clear()
    _transfers.clear()
