"""Recording the operations and annotations of a program while it runs."""

from __future__ import annotations

import contextlib
import time

from .. import _native
from .._errors import HalError, NotSupportedError
from .._records import ExecutionRecord, OperationRecord, decode
from . import annotations as _annotations
from .opening import at_opening

__all__ = ["Recording"]

# How long work that is pending when the program ends may take, as at every exit.
_DRAIN_S = 2.0


class Recording:
    """A log of operations, from where they were made to when they ran.

    It begins when the runtime is opened, and restarts when its backend is changed,
    which is possible only while no object of the runtime is alive.
    """

    def __init__(self) -> None:
        self._handle = 0
        self._timed = True
        #: What the program named, once the recording is finished.
        self.annotations: list[_annotations.Annotation] = []
        self._cancel = at_opening(self._begin)

    def _begin(self) -> None:
        with contextlib.suppress(HalError):  # no backend: the program gets the error itself
            self._handle = _native.trace_start_timed()
            _annotations.record()
            _native.positions(1)
            try:
                _native.executed_start()
            except NotSupportedError:
                self._timed = False

    def finish(self) -> tuple[list[OperationRecord], list[ExecutionRecord] | None]:
        """End it and return the log, and when its operations ran, None where that is not known.

        What is pending is waited for, as at the program's exit: for at most 2 s, and not on a device with a stream
        that captures.
        """
        self._cancel()
        if not self._handle:
            return [], []
        self.annotations = _annotations.take()
        operations: list[OperationRecord] = decode(_native.trace_take(self._handle))
        _native.trace_stop(self._handle)
        _native.positions(-1)
        executed: list[ExecutionRecord] | None = None
        if self._timed:
            self._drain()
            executed = decode(_native.executed_take())
            _native.executed_stop()
        return operations, executed

    @staticmethod
    def _drain() -> None:
        end = time.monotonic() + _DRAIN_S
        for ordinal in range(_native.device_count()):
            if _native.device_captures(ordinal):
                continue  # a wait for the device would invalidate the program's capture
            # An error of the work was the program's to report.
            with contextlib.suppress(HalError):
                _native.wait(_native.device_sync, ordinal, max(0.0, end - time.monotonic()))
