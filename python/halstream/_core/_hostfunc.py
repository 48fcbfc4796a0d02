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
from .._errors import ForkError, HalError
from .._runtime import runtime
from ._lookup import address_of

if TYPE_CHECKING:
    from ._work import Work

# Bits of what host_next returns, below the token; the same numbers are in pybuild/hostfunc.go.
_SPAWN = 1  # start one more thread: this one may be busy for long
_DROP = 2  # forget the function, or the exception that it ended with
_UNREPORTED = 4  # the failure given to this call will not be raised by any other
_END = 8  # end this thread
_SHIFT = 4
_FLAGS = (1 << _SHIFT) - 1

# A dispatcher that had nothing to do for so many waits ends, unless it is the spare.
_IDLE_NS = 2_000_000_000

#: Why a thread that the core had asked for could not be started last, "" while all could.
refused = ""

# Replaced by those of the process when the first thread is started.
_tokens = itertools.count(1)
_tasks: dict[int, tuple[Callable[..., object], tuple[Any, ...], dict[str, Any], bool]] = runtime.keep(
    "functions on streams", {}
)
# Exceptions of checked functions that are their stream's error, by token; a
# synchronize raises them.
_raised: dict[int, BaseException] = _native.checked
_stream_call = _native.raw("stream_call")
_stream_call_on = _native.raw("stream_call_on")
_host_next = _native.raw("host_next")
_started = False
_names = itertools.count(1)

# Set by _array.py, for which NumPy must be loaded: turns arrays among the
# arguments into what the function gets, and says what memory they are.
arguments: Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any], str]] | None = None

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
    """Enqueue a function; see `Stream.call`.

    Raises
    ------
    TypeError
        If `function` cannot be called, or what `reads` or `writes` names has no memory.
    HalError
        If the stream takes no more work: it is closed, or its device is lost.
    """
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
    """Enqueue a function whose arguments are as it gets them, with an account of what it works on.

    Raises
    ------
    HalError
        If the stream takes no more work: it is closed, or its device is lost.
    """
    token = 0
    try:
        if not _started:
            _start()  # first: on a blocking stream the call returns when the function has run
        token = next(_tokens)
        _tasks[token] = (function, args, kwargs, checked)
        if account:
            _stream_call_on(stream._id, token, account)
        else:
            _stream_call(stream._id, token)
    except RuntimeError as exc:
        _tasks.pop(token, None)
        raise stream._fail(exc, "call") from None


def hold(stream: Work, *objects: object) -> None:
    """Keep objects alive until the work enqueued so far is done; nothing waits for it."""
    if not _started:
        _start()
    token = next(_tokens)
    _tasks[token] = (_nothing, objects, {}, False)
    _native.stream_pass(stream._id, token)


def pending() -> bool:
    """Return True while functions, and so their arguments, wait for their turn."""
    return bool(_tasks)


def _nothing(*_: object) -> None:
    pass


def ranges(reads: Iterable[Any], writes: Iterable[Any]) -> str:
    """Return what the extension takes as an account of reads and writes."""
    if keep is not None:
        reads, writes = list(reads), list(writes)
        for buffer in (*reads, *writes):
            keep(buffer)
    parts = ["r:{}:{}".format(*address_of(buffer)) for buffer in reads]
    parts += ["w:{}:{}".format(*address_of(buffer, writable=True)) for buffer in writes]
    return " ".join(parts)


def _start() -> None:
    """Start the first thread.

    Raises
    ------
    HalError
        If Python cannot start one; the next call tries again.
    """
    global _started, _tasks, _tokens, _raised
    # A thread of the process serves every copy of this module, so that the tables
    # outlive a second import of the package.
    state = _native.process_state()
    _tasks = state.setdefault("tasks", _tasks)
    _tokens = state.setdefault("tokens", _tokens)
    _raised = _native.checked = state.setdefault("raised", _raised)
    _native.host_started()
    if not _thread():
        raise HalError(
            f"no thread could be started to run functions on: {refused}; look at the limits of this "
            "process (ulimit -u, the pids limit of its container), and start no first function after "
            "the main thread has ended",
            operation="call",
        )
    _started = True


def restart() -> None:
    """Forget the dispatchers: the backend was changed, which sends them away."""
    global _started
    _started = False
    _report_raised()


def _thread() -> bool:
    """Start a thread that the core has counted already; return False if there is none to be had.

    Those that exist go on then.
    """
    global refused
    name = f"halstream-dispatcher-{next(_names)}"
    try:
        threading.Thread(target=_dispatch, name=name, daemon=True).start()
    except RuntimeError as exc:
        refused = str(exc)
        _native.host_ended()
        return False
    refused = ""
    return True


def _dispatch() -> None:
    """Take tokens and run their functions until told to end."""
    token, error = 0, ""
    while True:
        packed = _host_next(token, error, _IDLE_NS)
        if packed > _FLAGS and not packed & _FLAGS:  # most often: a function, and nothing else
            token = packed >> _SHIFT
            error = _perform(token)
            continue
        if packed & _UNREPORTED:
            _unraisable(_raised.pop(token, None))
        token, error = 0, ""
        if packed & _SPAWN:
            _thread()
        if packed & _DROP:
            # It was aborted before its turn; or it has run, and its stream was closed
            # before anybody asked for the exception.
            if _tasks.pop(packed >> _SHIFT, None) is None:
                _unraisable(_raised.pop(packed >> _SHIFT, None))
        elif packed >> _SHIFT:
            token = packed >> _SHIFT
            error = _perform(token)
        if packed & _END:
            return


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


def _report(token: int, function: Callable[..., object], exc: BaseException, checked: bool) -> str:
    """Hand an exception to where it belongs; return the text for the core."""
    try:
        text = f"{type(exc).__name__}: {exc}".replace("\0", "?")
        text = text.encode(errors="backslashreplace").decode()
    except Exception:
        text = type(exc).__name__  # an exception whose text cannot be had
    if checked:
        _raised[token] = exc
        return "!" + text
    _unraisable(exc, function)
    return "?" + text


def _unraisable(exc: BaseException | None, function: Callable[..., object] | None = None) -> None:
    """Hand an exception that no call will raise to `sys.unraisablehook`."""
    if exc is None:
        return
    message = "Exception ignored in a function on a halstream stream"
    try:
        sys.unraisablehook(_hook_args()((type(exc), exc, exc.__traceback__, message, function)))
    except BaseException as wrong:
        # A hook that fails must not end the dispatcher.
        print(f"{message}: {exc!r} (and the hook failed: {wrong!r})", file=sys.stderr)


def _report_raised() -> None:
    """Report the exceptions of checked functions that no call will raise any more."""
    while _raised:
        _unraisable(_raised.popitem()[1])


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
    _report_raised()
    if left:
        print(
            f"halstream: {left} operation(s) still pending 2 s after the program ended were dropped",
            file=sys.stderr,
        )
