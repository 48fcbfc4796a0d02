"""Python functions on streams: the token table and the dispatcher threads.

A stream carries a token, never a Python object. When it reaches the token a
dispatcher thread takes it, runs the function and reports the outcome, in the
same call of the extension that takes the next token (D10, D20).
"""

from __future__ import annotations

import atexit
import itertools
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from ._stream import Stream

# What host_next returns besides tokens.
_PARK = -1

# A dispatcher that had nothing to do for so many waits ends, unless it is the spare.
_IDLE_NS = 2_000_000_000

_tokens = itertools.count(1)
_tasks: dict[int, tuple[Callable[..., object], tuple[Any, ...], dict[str, Any], bool]] = {}
_stream_call = _native.stream_call
_host_next = _native.host_next
_started = False
_names = itertools.count(1)


def submit(
    stream: Stream,
    function: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    checked: bool,
) -> None:
    """Enqueue a function; see `Stream.call`."""
    if not callable(function):
        raise TypeError(f"call() takes a function, not {type(function).__name__}")
    token = next(_tokens)
    _tasks[token] = (function, args, kwargs, checked)
    if not _started:
        _start()  # first: on a blocking stream the call returns when the function has run
    try:
        _stream_call(stream._id, token)
    except RuntimeError as exc:
        del _tasks[token]
        raise stream._fail(exc, "call") from None


def _start() -> None:
    global _started
    _started = True
    _native.host_started()
    _thread()


def _thread() -> None:
    """Start a thread that the core has counted already."""
    name = f"halstream-dispatcher-{next(_names)}"
    try:
        threading.Thread(target=_dispatch, name=name, daemon=True).start()
    except RuntimeError:
        # No more threads to be had, or the interpreter is ending: those that
        # exist go on.
        _native.host_ended()


def _dispatch() -> None:
    """Take tokens and run their functions until told to end."""
    token, error = 0, ""
    while True:
        packed = _host_next(token, error, _IDLE_NS)
        if packed <= 0:
            if packed == _PARK:
                return
            token, error = 0, ""
            continue
        # The low bit asks for another thread: this one may be busy for long.
        if packed & 1:
            _thread()
        token = packed >> 2
        if packed & 2:
            # Aborted before its turn: it will not run.
            del _tasks[token]
            token, error = 0, ""
            continue
        function, args, kwargs, checked = _tasks.pop(token)
        error = ""
        try:
            function(*args, **kwargs)
        except BaseException as exc:
            error = _report(token, function, exc, checked)
        # Held by the frame otherwise, for as long as the thread sleeps.
        del function, args, kwargs


def _report(
    token: int, function: Callable[..., object], exc: BaseException, checked: bool
) -> str:
    """Hand an exception to where it belongs; return the text for the core."""
    text = f"{type(exc).__name__}: {exc}"
    if checked:
        _native.checked[token] = exc
        return "!" + text
    sys.unraisablehook(_Unraisable(exc, function))
    return "?" + text


class _Unraisable:
    """The argument that `sys.unraisablehook` expects."""

    err_msg = "Exception ignored in a function on a halstream stream"

    def __init__(self, exc: BaseException, function: object) -> None:
        self.exc_type = type(exc)
        self.exc_value = exc
        self.exc_traceback = exc.__traceback__
        self.object = function


@atexit.register
def _at_exit() -> None:
    """Drain for at most 2 s, then fail what is left and send the dispatchers away."""
    left = _native.shutdown(2_000_000_000)
    if left:
        print(
            f"halstream: {left} operation(s) still pending 2 s after the program ended "
            "were dropped",
            file=sys.stderr,
        )
