"""torch._C (2.15): the private functions that programs use by name."""

from __future__ import annotations

from .._core import _current
from .cuda import current_stream


def _cuda_getCurrentRawStream(index: int) -> int:
    """torch._C._cuda_getCurrentRawStream (2.15): the handle of a device's current stream."""
    found = _current.current_stream(index)
    return current_stream(index).handle if found is None else found._on(index).handle


def _cuda_getCurrentStream(index: int) -> tuple[int, int, int]:
    """torch._C._cuda_getCurrentStream (2.15): id, device and device type."""
    stream = current_stream(index)
    return stream.stream_id, stream.device_index, stream.device_type
