"""What cupy says of the state of a capture."""

from __future__ import annotations

__all__ = ["valid_capture"]

# Of the extension: hal.CaptureState.
_INVALIDATED = 2


def valid_capture(state: int) -> bool:
    """Return whether a stream in a state captures.

    Raises
    ------
    RuntimeError
        If an error has invalidated the capture.
    """
    if state == _INVALIDATED:
        raise RuntimeError("an error has invalidated the capture of this stream; end_capture() raises its cause")
    return bool(state)
