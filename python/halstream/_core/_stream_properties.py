"""What a stream is: its device, handle, number, priority and state."""

from __future__ import annotations

from .. import _native
from .._runtime import Owner
from ._base import NON_BLOCKING
from ._device import Device
from ._work import Work

__all__ = ["StreamProperties"]


class StreamProperties(Work):
    """The properties of a stream; `Stream` adds its making, its order and its protocols."""

    _owner: Owner | None = None
    _index = -1
    _hash: int | None = None
    _ordinal: int

    def _repr_html_(self) -> str:
        from .._notebook.objects import stream

        return stream(self)  # type: ignore[arg-type]

    @property
    def device(self) -> Device:
        """The device the stream lives on."""
        return Device(self._ordinal)

    @property
    def handle(self) -> int:
        """Raw handle, 0 for the legacy default stream; unique while the stream lives."""
        value = int(_native.stream_handle(self._id))
        return 0 if value == 1 else value  # CUDA's other name of that stream

    @property
    def index(self) -> int:
        """Small number of the stream on its device, never used again; 0 = default stream."""
        if self._index < 0 or self._owner is None:
            self._index = int(_native.stream_index(self._id))  # kept for when it is closed
        return self._index

    @property
    def non_blocking(self) -> bool:
        """True if the stream takes no part in the legacy default stream's order."""
        return bool(_native.stream_flags(self._id) & NON_BLOCKING)

    @property
    def failures(self) -> int:
        """Number of functions on this stream that raised."""
        return int(_native.stream_failures(self._id))

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return not _native.is_open(self._id)

    @property
    def priority(self) -> int:
        """The priority, within the device's range; lower is more urgent."""
        return int(_native.stream_priority(self._id))

    def describe(self) -> str:
        """Return what is pending and what the head operation waits for."""
        return str(_native.describe(self._id))

    def __eq__(self, other: object) -> bool:
        return self._same(other) if isinstance(other, StreamProperties) else NotImplemented

    def __hash__(self) -> int:
        # The handle, and not the id: a stream of cupy is known by its handle alone.
        owner = self._owner
        found = self._hash if owner is None else owner.hash
        if found is None:
            try:
                found = hash(self.handle)
            except RuntimeError:  # closed
                found = hash(self._id)
            if owner is None:
                self._hash = found
            else:
                owner.hash = found
        return found

    def _same(self, other: StreamProperties) -> bool:
        """Return True if both objects name one stream of the runtime."""
        try:
            return self._id == other._id
        except RuntimeError:  # the handle of one of them names no live stream
            return False
