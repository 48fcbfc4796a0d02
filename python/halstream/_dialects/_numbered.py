"""Streams found by their small number, and those kept for communication and for transfers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar
from weakref import WeakValueDictionary

from .._core._stream import Stream
from .._runtime import Owner, State, runtime

S = TypeVar("S", bound=Stream)


class _Kept(State):
    """Streams by number while they are alive, and those kept for each device."""

    def __init__(self) -> None:
        # A number is never used again, so a stream that was closed is not found.
        self.owners: WeakValueDictionary[tuple[int, int], Owner] = WeakValueDictionary()
        self.communication: dict[int, Stream] = {}
        self.transfers: dict[int, Stream] = {}

    def reset(self) -> None:
        self.communication.clear()
        self.transfers.clear()

    def kept(self) -> Iterator[Owner]:
        for stream in (*self.communication.values(), *self.transfers.values()):
            if stream._owner is not None:
                yield stream._owner


_kept = runtime.add("numbered streams", _Kept())


def remember(stream: Stream) -> None:
    """Make a stream available to `find` for as long as an object of it is alive."""
    owner = stream._owner
    if owner is not None:
        _kept.owners[stream._ordinal, stream.index] = owner


def find(cls: type[S], ordinal: int, number: int) -> S | None:
    """Return the remembered stream of a device with this number; None if there is none.

    Number 0 is the legacy default stream.
    """
    if number == 0:
        return cls._default(ordinal)
    owner = _kept.owners.get((ordinal, number))
    if owner is None:
        return None
    new = cls.__new__(cls)
    new._attach(owner.ident, ordinal, owner)
    return new


def communication(cls: type[S], ordinal: int) -> S:
    """Return a new object for the one stream that a device keeps for communication."""
    stream = _kept.communication.get(ordinal)
    if stream is None:
        # If two threads get here at once, the stream of one of them is kept.
        stream = _kept.communication.setdefault(ordinal, Stream(ordinal, non_blocking=True))
        remember(stream)
    new = cls.__new__(cls)
    new._attach(stream._id, ordinal, stream._owner)
    return new


def transfer(ordinal: int) -> Stream:
    """Return the stream on which the runtime copies contents from the host to a device.

    No work of the program is ever on it, so no pending work of the program can
    delay these copies.
    """
    stream = _kept.transfers.get(ordinal)
    if stream is None:
        stream = _kept.transfers.setdefault(ordinal, Stream(ordinal, non_blocking=True))
    return stream
