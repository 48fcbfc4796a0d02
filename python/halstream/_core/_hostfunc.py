"""Python functions on streams: the token table and the dispatcher threads.

A stream carries a token, never a Python object. When it reaches the token a
dispatcher thread takes it, runs the function and reports the outcome, in the
same call of the extension that takes the next token.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import ForkError
from .._runtime import runtime

if TYPE_CHECKING:
    from ._work import Work

# What host_next returns besides tokens.
_PARK = -1

# A dispatcher that had nothing to do for so many waits ends, unless it is the spare.
_IDLE_NS = 2_000_000_000

_tokens = itertools.count(1)
_tasks: dict[int, tuple[Callable[..., object], tuple[Any, ...], dict[str, Any], bool]] = runtime.keep(
    "functions on streams", {}
)
_stream_call = _native.raw("stream_call")
_stream_call_on = _native.raw("stream_call_on")
_host_next = _native.raw("host_next")
_started = False
_names = itertools.count(1)

# Set by _array.py, for which NumPy must be loaded: turns arrays among the
# arguments into what the function gets, and says what memory they are.
arguments: (
    Callable[
        [tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any], str]
    ]
    | None
) = None

# Set while a sanitizer is on: is given what functions on streams work on.
keep: Callable[[Any], None] | None = None


def submit(
    stream: Work,
    function: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    checked: bool,
    reads: Iterable[Any] = (),
    writes: Iterable[Any] = (),
) -> None:
    """Enqueue a function; see `Stream.call`."""
    if not callable(function):
        raise TypeError(f"call() takes a function, not {type(function).__name__}")
    account = ""
    if (args or kwargs) and arguments is not None:
        args, kwargs, account = arguments(args, kwargs)
    if reads or writes:
        account = ranges(reads, writes)
    enqueue(stream, function, args, kwargs, checked, account)


def enqueue(
    stream: Work,
    function: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    checked: bool,
    account: str,
) -> None:
    """Enqueue a function whose arguments are as it gets them, with an account of what it works on."""
    token = next(_tokens)
    _tasks[token] = (function, args, kwargs, checked)
    if not _started:
        _start()  # first: on a blocking stream the call returns when the function has run
    try:
        if account:
            _stream_call_on(stream._id, token, account)
        else:
            _stream_call(stream._id, token)
    except RuntimeError as exc:
        del _tasks[token]
        raise stream._fail(exc, "call") from None


def hold(stream: Work, *objects: object) -> None:
    """Keep objects alive until the work enqueued so far is done; nothing waits for it."""
    token = next(_tokens)
    _tasks[token] = (_nothing, objects, {}, False)
    if not _started:
        _start()
    _native.stream_pass(stream._id, token)


def _nothing(*_: object) -> None:
    pass


def ranges(reads: Iterable[Any], writes: Iterable[Any]) -> str:
    """Return what the extension takes as an account of reads and writes."""
    from .._memory import address_of

    if keep is not None:
        reads, writes = list(reads), list(writes)
        for buffer in (*reads, *writes):
            keep(buffer)
    parts = ["r:{}:{}".format(*address_of(buffer)) for buffer in reads]
    parts += ["w:{}:{}".format(*address_of(buffer, writable=True)) for buffer in writes]
    return " ".join(parts)


def _start() -> None:
    global _started
    _started = True
    _native.host_started()
    _thread()


def restart() -> None:
    """Forget the dispatchers: the backend was changed, which sends them away."""
    global _started
    _started = False


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
        token, error = 0, ""
        if packed <= 0:
            if packed == _PARK:
                return
            continue
        # The low bit asks for another thread: this one may be busy for long.
        if packed & 1:
            _thread()
        # The second bit: aborted before its turn, it will not run.
        if packed & 2:
            del _tasks[packed >> 2]
        else:
            token = packed >> 2
            error = _perform(token)


def _perform(task: int) -> str:
    """Run the function of a token; return the text of its error for the core.

    In a frame of its own. Whoever looks at the variables of a frame, as debuggers and
    the stall report do, leaves a copy of them in it up to Python 3.12, and the frame
    of a dispatcher would keep the arguments for as long as the thread sleeps.
    """
    function, args, kwargs, checked = _tasks.pop(task)
    try:
        function(*args, **kwargs)
        return ""
    except BaseException as exc:
        return _report(task, function, exc, checked)
    finally:
        # The traceback of an error that somebody keeps refers to this frame.
        del function, args, kwargs


def _report(
    token: int, function: Callable[..., object], exc: BaseException, checked: bool
) -> str:
    """Hand an exception to where it belongs; return the text for the core."""
    try:
        text = f"{type(exc).__name__}: {exc}".replace("\0", "?")
        text = text.encode(errors="backslashreplace").decode()
    except Exception:
        text = type(exc).__name__  # an exception whose text cannot be had
    if checked:
        _native.checked[token] = exc
        return "!" + text
    message = "Exception ignored in a function on a halstream stream"
    try:
        sys.unraisablehook(
            _hook_args()((type(exc), exc, exc.__traceback__, message, function))
        )
    except BaseException as wrong:
        # A hook that fails must not end the dispatcher.
        print(f"{message}: {text} (and the hook failed: {wrong!r})", file=sys.stderr)
    return "?" + text


@functools.cache
def _hook_args() -> Any:
    """Return the class of the argument of `sys.unraisablehook`, which has no public name.

    One is caught by letting a finalizer fail, as that is what the hook is for.
    """
    caught: list[type] = []
    hook = sys.unraisablehook

    class Probe:
        def __del__(self) -> None:
            raise LookupError(caught)

    def catch(args: Any) -> None:
        if isinstance(args.exc_value, LookupError) and args.exc_value.args == (caught,):
            caught.append(type(args))
        else:
            hook(args)

    sys.unraisablehook = catch
    try:
        Probe()
    finally:
        sys.unraisablehook = hook
    return caught[0]


@atexit.register
def _at_exit() -> None:
    """Drain for at most 2 s, then fail what is left and send the dispatchers away."""
    if not _native.loaded():
        return
    try:
        left = _native.shutdown(2_000_000_000)
    except ForkError:
        return  # a forked child has no part in the parent's work
    if left:
        print(
            f"halstream: {left} operation(s) still pending 2 s after the program ended "
            "were dropped",
            file=sys.stderr,
        )
