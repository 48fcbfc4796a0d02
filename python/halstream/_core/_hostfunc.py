"""Python functions on streams: how they are enqueued, the threads that run them, and what becomes of their errors.

A stream carries a token, never a Python object. The extension has the table of functions and the loop of the threads
that run them (pybuild/dispatch.c), and calls back for errors and new threads.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import _native, _sites
from .._errors import ForkError, HalError
from . import _assertions, _lost, _threads
from ._declared import Declared
from ._declared import account as _account

if TYPE_CHECKING:
    from ._stream import Stream

#: Why a thread that the core had asked for could not be started last, "" while all could.
refused = ""

# Exceptions of checked functions that are their stream's error, by number; a
# synchronize raises them. Replaced by those of the process when the first thread is started.
_raised: dict[int, BaseException] = _native.checked
_stream_call = _native.raw("stream_call")
_stream_call_on = _native.raw("stream_call_on")
_stream_call_many = _native.raw("stream_call_many")
_started = False
# The functions of dispatch.c, once the extension is loaded; see connect.
_c: Any = None
_names = itertools.count(1)

# Set by set_arguments: turns arrays among the arguments into what the function gets,
# and says what memory they are.
arguments: Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any], str]] | None = None

# Set while a sanitizer is on: is given what functions on streams work on.
keep: Callable[[Any], None] | None = None
# Set while a program is traced: the numbers of the functions that declare all that they work on.
noted: set[int] | None = None
# Set by set_look while a sanitizer is on: is given a function, its arguments, the account of them and whether
# they are all that it works on; returns the account to enqueue it with, and what is to be
# called with its kind and number.
look: Callable[..., tuple[str, Callable[[str, int], None] | None]] | None = None


def set_arguments(
    function: Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any], str]],
) -> None:
    """Have `function` look at the arguments of calls."""
    global arguments
    arguments = function


def set_look(function: Callable[..., tuple[str, Callable[[str, int], None] | None]] | None) -> None:
    """Have every function that is enqueued looked at by `function`, None for no more."""
    global look
    look = function


def submit(
    stream: Stream,
    function: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    checked: bool,
    reads: Iterable[Any] | None = None,
    writes: Iterable[Any] | None = None,
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
    said = declared(function, reads, writes)
    enqueue(stream, function, args, kwargs, checked, account if said is None else said, said is not None)


def declared(function: Any, reads: Iterable[Any] | None, writes: Iterable[Any] | None) -> str | None:
    """Return the account of what a call or its function declares, None if neither does."""
    if reads is None and writes is None:
        if not isinstance(function, Declared):
            return None
        reads, writes = function.reads, function.writes
    return ranges(reads or (), writes or ())


def account_of(function: Any, args: tuple[Any, ...], kind: str, token: int) -> str:
    """Return the account of a function that this module does not enqueue, with array arguments as read."""
    said = declared(function, None, None)
    if said is not None and noted is not None:
        noted.add(token)
    account = said
    if account is None:
        account = "" if arguments is None else arguments(args, {})[2]
    if look is not None:
        account, note = look(function, args, {}, account, said is not None)
        if note is not None:
            note(kind, token)
    return account


def submit_many(stream: Stream, calls: Iterable[Any]) -> None:
    """Enqueue several functions; see `Stream.call_many`.

    Raises
    ------
    TypeError
        If an element is no function and no tuple that begins with one; then nothing is enqueued.
    HalError
        If the stream takes no more work: it is closed, or its device is lost.
    """
    given: list[tuple[Any, tuple[Any, ...], dict[str, Any], str, bool]] = []
    for index, one in enumerate(calls):
        function, *args = (one,) if callable(one) or not isinstance(one, tuple) or not one else one
        if not callable(function):
            raise TypeError(
                f"call_many() takes functions and tuples of a function and its arguments, not {type(one).__name__} "
                f"(element {index}); nothing was enqueued"
            )
        values, account = tuple(args), ""
        kwargs: dict[str, Any] = {}
        if args and arguments is not None:
            values, kwargs, account = arguments(values, kwargs)
        said = declared(function, None, None)
        given.append((function, values, kwargs, account if said is None else said, said is not None))
    if look is None and not any(account or complete for _, _, _, account, complete in given):
        del given[: _enqueue_plain(stream, given)]
    for function, values, kwargs, account, complete in given:
        enqueue(stream, function, values, kwargs, False, account, complete)


def _enqueue_plain(stream: Stream, calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], str, bool]]) -> int:
    """Enqueue functions that work on nothing the runtime knows in one step; return how many the stream took."""
    if not _started:
        _start()
    tokens = [_c.task(function, values, (), 0) for function, values, _, _, _ in calls]
    taken = 0
    try:
        taken = _stream_call_many(stream._id, " ".join(map(str, tokens)))
    except RuntimeError as exc:
        raise stream._fail(exc, "call") from None
    finally:
        for token in tokens[taken:]:
            _c.discard(token)
    return taken


def enqueue(
    stream: Stream,
    function: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    checked: bool,
    account: str,
    complete: bool = True,
) -> None:
    """Enqueue a function whose arguments are as it gets them, with an account of what it works on.

    `complete` says that it works on nothing else.

    Raises
    ------
    HalError
        If the stream takes no more work: it is closed, or its device is lost.
    """
    token, note = 0, None
    if look is not None:
        account, note = look(function, args, kwargs, account, complete)
    try:
        if not _started:
            _start()  # first: on a blocking stream the call returns when the function has run
        token = _c.task(function, (*args, *kwargs.values()), tuple(kwargs), checked)
        if complete and noted is not None:
            noted.add(token)
        if note is not None:
            note("call", token)
        if account:
            _stream_call_on(stream._id, token, account)
        else:
            _stream_call(stream._id, token)
    except RuntimeError as exc:
        if token:
            _c.discard(token)
        raise stream._fail(exc, "call") from None


def hold(stream: Stream, *objects: object) -> None:
    """Keep objects alive until the work enqueued so far is done; nothing waits for it."""
    if not _started:
        _start()
    token = _c.task(None, objects, (), 0)
    try:
        _native.stream_pass(stream._id, token)
    except BaseException:
        _c.discard(token)
        raise


def pending(*, graphs: bool = True) -> int:
    """Return how many functions have not ended, and so keep their arguments; those of graphs only if `graphs`."""
    return 0 if _c is None else int(_c.pending() - (0 if graphs else _c.kept()))


def function_of(token: int) -> Any:
    """Return the function that a token of the core stands for now, None if it has ended."""
    return None if _c is None else _c.function_of(token)


def place_of(token: int) -> str:
    """Return where the function that a token stands for was enqueued, '' if that is not known."""
    return "" if _c is None else _sites.site_line(_c.site_of(token))


def running() -> dict[int, tuple[int, Any, int]]:
    """Return what the threads run for streams: by thread, the token, the function and how many arguments it has.

    The arguments are not handed out: whoever looks would keep them alive after the function has ended.
    """
    if _c is None:
        return {}
    return {ident: (token, function, count) for ident, token, function, count in _c.running() if token}


def _nothing() -> None:
    pass


def ranges(reads: Iterable[Any], writes: Iterable[Any]) -> str:
    """Return what the extension takes as an account of reads and writes."""
    if keep is not None:
        reads, writes = list(reads), list(writes)
        for buffer in (*reads, *writes):
            keep(buffer)
    return _account(reads, writes)


def _start() -> None:
    """Start the first thread.

    Raises
    ------
    HalError
        If Python cannot start one; the next call tries again.
    """
    global _started, _raised
    # A thread of the process serves every copy of this module, so that the tables
    # outlive a second import of the package.
    state = _native.process_state()
    _raised = _native.checked = state.setdefault("raised", _raised)
    if _c is None:
        connect()
    _native.host_started()
    if not _thread():
        raise HalError(
            f"no thread could be started to run functions on: {refused}; look at the limits of this "
            "process (ulimit -u, the pids limit of its container), and start no first function after "
            "the main thread has ended",
            operation="call",
        )
    _started = True


def connect() -> None:
    """Exchange functions with the extension."""
    global _c
    table: dict[str, Any] = {
        "spawn": _thread,
        "report": _report_number,
        "unreported": _report_unraised,
        "nothing": _nothing,
    }
    _native.dispatch_install(id(table))
    _c = SimpleNamespace(**table)


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
        _threads.start(_dispatch, name)
    except RuntimeError as exc:
        refused = str(exc)
        _native.host_ended()
        return False
    refused = ""
    return True


def _dispatch() -> None:
    """Run the functions of streams until told to end."""
    _c.dispatch()


def _report_number(number: int, function: Callable[..., object], exc: BaseException) -> str:
    """Hand an exception to where it belongs; `number` is that of a checked function's, else 0."""
    return _report(number, function, exc, number != 0)


def _report_unraised(number: int) -> None:
    """Report an exception that no call will raise any more."""
    _unraisable(_raised.pop(number, None))


def _report(token: int, function: Callable[..., object], exc: BaseException, checked: bool) -> str:
    """Hand an exception to where it belongs; return the text for the core."""
    _assertions.mark(exc)
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
    if exc is None or _assertions.taken(exc):
        return
    message = "Exception ignored in a function on a halstream stream"
    try:
        sys.unraisablehook(hook_args()((type(exc), exc, exc.__traceback__, message, function)))
        if sys.unraisablehook is sys.__unraisablehook__:
            _assertions.print_page(exc)  # which that one does not show
    except BaseException as wrong:
        # A hook that fails must not end the dispatcher.
        print(f"{message}: {exc!r} (and the hook failed: {wrong!r})", file=sys.stderr)


def _report_raised() -> None:
    """Report the exceptions of checked functions that no call will raise any more."""
    while _raised:
        _unraisable(_raised.popitem()[1])


@atexit.register
def _at_exit() -> None:
    """Drain for at most 2 s, then fail what is left and send the dispatchers away."""
    if not _native.loaded():
        return
    try:
        left = _native.shutdown(2_000_000_000)
    except ForkError:
        return  # a forked child has no part in the parent's work
    _threads.end()
    _report_raised()
    if left:
        print(
            f"halstream: {left} operation(s) still pending 2 s after the program ended were dropped",
            file=sys.stderr,
        )
    _lost.at_exit()


@functools.cache
def hook_args() -> Any:
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
