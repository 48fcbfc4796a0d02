"""Tools for tests of stream code."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from . import _native
from ._core._base import reap, repr_after_fork
from ._core._lost import recover
from ._core._stream import Stream
from ._notebook.record import record
from ._records import OperationRecord, decode, ranges
from ._schedules.block import Schedule, schedule
from ._schedules.explore import Explored, explore
from ._schedules.token import Token
from ._stalls.leaks import report as leaks

__all__ = [
    "Explored",
    "Gate",
    "Operation",
    "Schedule",
    "Token",
    "Trace",
    "explore",
    "leaks",
    "record",
    "recover",
    "schedule",
]


def __dir__() -> list[str]:
    return sorted({*__all__, "__doc__", "__name__"})


class Gate:
    """An operation that holds its stream until it is opened.

    Parameters
    ----------
    stream : Stream
        Work enqueued on it after the gate waits. Several gates may stand on
        one stream.

    Notes
    -----
    Contract H3: opening is the one call that a function on a stream may make.
    As a context manager the gate opens on leaving, also after an exception. A
    gate that is collected unopened opens, so that no stream stays blocked.

    Examples
    --------
    >>> import halstream as hs
    >>> s = hs.Stream()
    >>> with hs.testing.Gate(s):
    ...     s.query()
    False
    >>> s.synchronize()
    >>> s.query()
    True
    """

    def __init__(self, stream: Stream) -> None:
        try:
            self._id = _native.gate_new(stream._id)
        except Exception as exc:
            fail = getattr(stream, "_fail", None)
            if fail is None:
                raise TypeError(f"Gate() takes a Stream, not {type(stream).__name__}") from None
            raise fail(exc, "gate") from None

    def open(self) -> None:
        """Let the stream go on. Opening again does nothing."""
        _native.gate_open(self._id)

    @property
    def opened(self) -> bool:
        """True after `open`."""
        return bool(_native.gate_opened(self._id))

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.open()

    @repr_after_fork
    def __repr__(self) -> str:
        return f"<halstream Gate {self._id}, {'open' if self.opened else 'closed'}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"cannot pickle or copy a {type(self).__name__}: it holds a stream of this process; "
            "create a new one where you need it"
        )

    def __del__(self) -> None:
        ident = self.__dict__.get("_id")
        if ident is not None and reap is not None:
            reap.append(ident)


class Operation(NamedTuple):
    """One call that enqueued work, as `Trace` saw it."""

    kind: str
    device: int
    stream: int  #: `Stream.index`
    thread: int  #: the runtime's own number of the calling thread
    event: int  #: number of the event, 0 for none
    version: int  #: of the event: made by a record, bound by a wait
    other: int  #: index of the stream waited for
    token: int  #: of a function
    reads: tuple[tuple[int, int], ...]  #: address and size in bytes
    writes: tuple[tuple[int, int], ...]
    name: str = ""  #: that the program gave the operation


class Trace:
    """Log of every operation that is enqueued while the context lasts.

    Contract O1. The calls of all threads are in it.

    Examples
    --------
    >>> import halstream as hs
    >>> s = hs.Stream()
    >>> with hs.testing.Trace() as trace:
    ...     s.nop()
    ...     event = s.record()
    >>> [operation.kind for operation in trace.operations]
    ['nop', 'record']
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._handle = 0

    def __repr__(self) -> str:
        count = f"{len(self.operations)} operation{'' if len(self.operations) == 1 else 's'}"
        return f"<halstream Trace of {count}{', which goes on' if self._handle else ''}>"

    def __enter__(self) -> Trace:
        if self._handle:
            raise RuntimeError("this Trace is in use; leave it first")
        self._handle = _native.trace_start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        operations: list[OperationRecord] = decode(_native.trace_take(self._handle))
        _native.trace_stop(self._handle)
        self._handle = 0
        self.operations += [
            Operation(
                o["kind"], o["device"], o["stream"], o["thread"], o["event"], o["version"], o["other"], o["token"],
                ranges(o["reads"]), ranges(o["writes"]), o["name"],
            )
            for o in operations
            if not (o["host"] or o["launch"])
        ]  # fmt: skip
