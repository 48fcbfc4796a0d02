"""Copies and fills between addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn, cast

from .. import _native
from .._core import _current, _hostfunc
from .._core._device import ordinal
from .._core._stream import Stream
from .._errors import InvalidValueError

__all__ = [
    "ASYNC",
    "BLOCKING",
    "FILLING",
    "STAGED",
    "copy",
    "copy_as",
    "copy_blocking",
    "copy_rows",
    "copy_rows_as",
    "copy_rows_blocking",
    "current",
    "failed",
    "fill",
    "fill_blocking",
    "relaxed",
]

# Kinds of calls that copy, numbered as hal.CopyCall.
BLOCKING, ASYNC, STAGED, FILLING = 1, 2, 3, 4

#: hal.RelaxedMode: what the thread calls disturbs no capture.
_RELAXED = 2

_stream_copy = _native.raw("stream_copy")
_stream_copy_as = _native.raw("stream_copy_as")
_stream_fill = _native.raw("stream_fill")


def copy(stream: Stream, dst: int, src: int, nbytes: int, *owners: object) -> None:
    """Enqueue a copy of bytes between addresses.

    Pinned and device sources are read when the copy runs. Up to 64 KiB
    of a pageable source are taken within the call; a larger copy from
    pageable memory, every copy to it, and every copy within host memory
    returns when it is done. Such a copy reports the stream's first error, as
    `synchronize` does.

    Parameters
    ----------
    stream : Stream
    dst, src, nbytes : int
    *owners
        Objects that the pageable memory belongs to. When Ctrl-C ends the wait
        the copy goes on, and keeps them.

    Raises
    ------
    InvalidValueError
        If a range leaves its block, was freed, or the two overlap.

    Notes
    -----
    Contract M3, M4, M5, M13. Source: CUDA driver API, cuMemcpyAsync.
    """
    try:
        _stream_copy(stream._id, dst, src, nbytes)
    except BaseException as exc:
        raise_failed(stream, exc, "copy", *owners)


def raise_failed(stream: Any, exc: BaseException, operation: str, *owners: object) -> NoReturn:
    """Raise the error of a copy that failed; one that a signal's handler ended goes on, and keeps the owners.

    Raises
    ------
    BaseException
        `exc`, if the core did not write it, or what the stream's class makes of it.
    """
    if not isinstance(exc, Exception):
        if owners:
            _hostfunc.hold(stream, *owners)
        raise exc
    try:
        error = failed(stream, exc, operation)
    except BaseException as raised:
        if owners and raised is exc:
            _hostfunc.hold(stream, *owners)  # what a signal's handler raised
        raise
    raise error from None


def failed(stream: Any, exc: Exception, operation: str) -> BaseException:
    """Return what the class of a stream makes of an error of the core."""
    if not isinstance(stream, Stream):
        return TypeError(f"{operation}() takes a halstream Stream, not {type(stream).__name__}")
    if isinstance(exc, OverflowError):
        wrong: Any = stream._errors.get("invalid_value", InvalidValueError)
        return cast(BaseException, wrong(f"an address or a size is negative or past 64 bits ({exc})"))
    return stream._fail(exc, operation)


def copy_rows(stream: Stream, dst: int, dst_pitch: int, src: int, src_pitch: int, width: int, height: int) -> None:
    """Enqueue a copy of `height` rows of `width` bytes, the rows a pitch apart; see `copy`.

    Raises
    ------
    InvalidValueError
        If a row is longer than the distance between rows, or memory is not known.
    ClosedError
        If the stream is closed.
    """
    try:
        _native.stream_copy_rows(stream._id, dst, dst_pitch, src, src_pitch, width, height)
    except Exception as exc:
        raise failed(stream, exc, "copy") from None


def copy_blocking(dst: int, src: int, nbytes: int, device: Any = None) -> None:
    """Copy as an operation of the legacy default stream, and wait for it.

    Checks count what the vendor's call guarantees: a copy within devices orders nothing
    for the host, and one from pageable memory only what was enqueued before it.

    Notes
    -----
    Contract M6, V8. Source: CUDA driver API, cuMemcpy.
    """
    copy_rows_as(BLOCKING, Stream._default(ordinal(device)), dst, nbytes, src, nbytes, nbytes, 1)


def copy_rows_blocking(
    dst: int, dst_pitch: int, src: int, src_pitch: int, width: int, height: int, device: Any = None
) -> None:
    """Copy rows as `copy_rows` does, as `copy_blocking` copies bytes."""
    copy_rows_as(BLOCKING, Stream._default(ordinal(device)), dst, dst_pitch, src, src_pitch, width, height)


def copy_as(call: int, stream: Stream, dst: int, src: int, nbytes: int, *owners: object) -> None:
    """Enqueue a copy of bytes as `copy` does, by another kind of call; see `copy_rows_as`."""
    copy_rows_as(call, stream, dst, nbytes, src, nbytes, nbytes, 1, *owners)


def copy_rows_as(
    call: int, stream: Stream, dst: int, dst_pitch: int, src: int, src_pitch: int, width: int, height: int,
    *owners: object,
) -> None:  # fmt: skip
    """Enqueue a copy of rows by a kind of call, which decides when it returns and what it orders for the host.

    Parameters
    ----------
    call : int
        `BLOCKING` and `ASYNC` are CUDA's copies without and with the suffix Async,
        `STAGED` those of CANN, which complete every copy of pageable memory;
        `FILLING` is how larger elements than 4 bytes are filled in, and waits for pageable memory only.

    Raises
    ------
    InvalidValueError
        If a row is longer than the distance between rows, or memory is not known.

    Notes
    -----
    Contract M5, M6, V8, V9. Source: CUDA driver API, "API synchronization behavior"; CANN, aclrtMemcpyAsync.
    """
    try:
        _stream_copy_as(stream._id, call, dst, dst_pitch, src, src_pitch, width, height)
    except BaseException as exc:
        raise_failed(stream, exc, "copy", *owners)


def fill_blocking(dst: int, value: int, itemsize: int, count: int, device: Any = None) -> None:
    """Fill on the legacy default stream, and wait where the target is memory of the host or managed.

    Raises
    ------
    InvalidValueError
        If the memory is not known, or smaller than that.

    Notes
    -----
    Contract M8, V8. Source: CUDA driver API, cuMemsetD8.
    """
    stream = Stream._default(ordinal(device))
    try:
        _native.stream_fill_blocking(stream._id, dst, value, itemsize, count)
    except Exception as exc:
        raise failed(stream, exc, "fill") from None


def fill(stream: Stream, dst: int, value: int, itemsize: int, count: int) -> None:
    """Enqueue `count` elements of 1, 2 or 4 bytes, each set to `value`.

    Raises
    ------
    InvalidValueError
        If the memory is not known, or smaller than that.
    ClosedError
        If the stream is closed.

    Notes
    -----
    Contract M8. Source: CUDA driver API, cuMemsetD8Async.
    """
    try:
        _stream_fill(stream._id, dst, value, itemsize, count)
    except Exception as exc:
        raise failed(stream, exc, "fill") from None


def current(stream: Stream | None) -> Stream:
    """Return a stream: the current one for None, and the one of a ``__cuda_stream__``."""
    if stream is None:
        return Stream._current(_current.current_device())
    return stream if isinstance(stream, Stream) else Stream.from_cuda_stream(stream)


@contextlib.contextmanager
def relaxed() -> Iterator[None]:
    """Let the calls of this thread disturb no capture, as CUDA's relaxed mode does."""
    mode = _native.capture_mode_exchange(_RELAXED)
    try:
        yield
    finally:
        _native.capture_mode_exchange(mode)
