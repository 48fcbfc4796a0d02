"""The core: the only classes that hold ids of the extension, in one place to import."""

from ._base import BLOCK_HOST, BLOCKING_SYNC, EXTERNAL, INTERPROCESS, NON_BLOCKING, TIMING, drain
from ._device import Device, device_count, ordinal, synchronize
from ._event import Event
from ._stream import Stream

__all__ = [
    "BLOCKING_SYNC",
    "BLOCK_HOST",
    "EXTERNAL",
    "INTERPROCESS",
    "NON_BLOCKING",
    "TIMING",
    "Device",
    "Event",
    "Stream",
    "device_count",
    "drain",
    "ordinal",
    "synchronize",
]
