"""The only importer of the extension: error texts become exceptions."""

from __future__ import annotations

import _thread
import importlib
import math
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from .._errors import KINDS, HalError, InvalidValueError, OutOfMemoryError
from .._records import ERROR_PREFIX, ErrorRecord, decode
from .._runtime import collected, runtime

#: Exceptions of checked functions by token, until a synchronize raises them.
checked: dict[int, BaseException] = runtime.keep("exceptions of checked functions", {})

_SUBINTERPRETER = (
    "halstream does not support subinterpreters: its runtime belongs to the whole process. Use it "
    "in the main interpreter only (with mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
)


def _check_interpreter() -> None:
    # Not both names: the search for one that does not exist reads every folder of sys.path.
    try:
        interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    except ImportError:
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(_SUBINTERPRETER)


_check_interpreter()

#: "halstream", of which this package is a part.
_PACKAGE = __name__.rpartition(".")[0]

_ext: Any = None
_fallback_logged = False
# Calls before which nothing may be opened.
_CHOOSING = frozenset({"pybuild_UseBackend", "pybuild_Version"})
# A finalizer or a signal handler may run while its thread loads, and may call the extension.
_loading = threading.RLock()


def _load() -> Any:
    """Load the extension, at the first call of one of its functions.

    Not at import: its threads start with it, and a process that only imported
    halstream may still fork.
    """
    global _ext
    # Before anything is loaded, so that a value which cannot be used is an error of
    # every call until it is corrected.
    settings = _settings() if _ext is None else []
    if _ext is None:
        _check_limits()
    with _loading:
        fresh = _ext is None
        if fresh:
            ext = _import_extension()
            # Hot calls must not pay for the detour that brought them here.
            for name, module in list(sys.modules.items()):
                if name.startswith(_PACKAGE):
                    for key, value in list(vars(module).items()):
                        if type(value) is _Deferred:
                            setattr(module, key, getattr(ext, value.camel))
            ext.pybuild_StallHook(id(_endless))
            ext.pybuild_PackageRoot(importlib.import_module("._sites", _PACKAGE).ROOT)
            collected.note = ext.collected
            fresh = _ext is None  # unless a call from a finalizer has done all this meanwhile
            _ext = ext
    if fresh:
        # Now: a program may keep a method of its first stream.
        importlib.import_module("._core._hostfunc", _PACKAGE).connect()
        for begin in settings:
            begin()
    return _ext


# Signals that a thread's own instructions cause, and the one by which Go's scheduler interrupts threads.
_SIGNALS_OF_THREADS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS", "SIGURG")


def _import_extension() -> Any:
    """Import the extension so that the runtime's own threads leave signals to the program's threads.

    They keep the mask that the importing thread has now. The kernel gives a process's
    signal to any thread that does not block it, and one that a thread of the runtime
    gets interrupts no wait of the main thread: Ctrl-C would be seen when that has ended.
    """
    try:
        import signal

        others = signal.valid_signals() - {getattr(signal, name) for name in _SIGNALS_OF_THREADS}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, others)
    except (ImportError, AttributeError):  # Windows has no masks
        return importlib.import_module("._halstream", _PACKAGE)
    try:
        return importlib.import_module("._halstream", _PACKAGE)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# What the runtime needs when it starts: Go ends the process where it gets less.
_ADDRESS_SPACE = 1 << 30
_THREADS = 12
_BEGIN_S = 10  # for a thread that the system has started to get a processor


def _check_limits() -> None:
    """Raise what Go would end the process for when it is loaded.

    Raises
    ------
    OutOfMemoryError
        If the process may not map enough memory.
    HalError
        If it may not start enough threads.
    """
    try:
        import resource  # there is none on Windows

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        limit, used = -1, 0
    if limit >= 0 and limit - used < _ADDRESS_SPACE:
        raise OutOfMemoryError(
            f"the runtime reserves {_ADDRESS_SPACE >> 20} MiB of addresses when it starts, and the limit of this "
            f"process (ulimit -v, RLIMIT_AS) leaves {max(0, limit - used) >> 20} MiB; raise the limit",
            operation="start runtime",
        )
    # All of them exist at once, and end when the lock is free. This one waits until each runs: to CPython 3.10
    # a thread that begins while the interpreter ends is a fatal error.
    leave = _thread.allocate_lock()
    begun = []

    def stay(runs: Any) -> None:
        runs.release()
        with leave:
            pass

    with leave:
        try:
            for _ in range(_THREADS):
                runs = _thread.allocate_lock()
                runs.acquire()
                _thread.start_new_thread(stay, (runs,))
                begun.append(runs)
        except RuntimeError as exc:
            if "shutdown" not in str(exc):  # else Python starts none any more; Go still may
                raise HalError(
                    f"the runtime needs {_THREADS} threads when it starts, and this process may start {len(begun)} "
                    f"more: {exc}; raise its limits (ulimit -u, the pids limit of its container)",
                    operation="start runtime",
                ) from exc
        finally:
            for runs in begun:
                runs.acquire(timeout=_BEGIN_S)


def _settings() -> list[Callable[[], None]]:
    """Return what is to begin with the runtime, by the environment.

    Raises
    ------
    InvalidValueError
        For a value that is not one of those that are allowed.
    """
    begin = []
    sanitize = os.environ.get("HALSTREAM_SANITIZE", "")
    if sanitize not in ("", "0"):
        begin.append(importlib.import_module("._checks.sanitize", _PACKAGE).prepare(sanitize))
    if _switch("HALSTREAM_LEAKS", False):
        begin.append(importlib.import_module("._stalls.leaks", _PACKAGE).at_exit)
    _switch("HALSTREAM_STALL", True)
    _switch("HALSTREAM_STRICT", False)
    return begin


def _switch(name: str, default: bool) -> bool:
    """Return the value of a variable that is 0 or 1, `default` where it is not set."""
    value = os.environ.get(name, "")
    if value not in ("", "0", "1"):
        raise InvalidValueError(f"{name} is {value!r}; give 1, or 0 for not")
    return value == "1" if value else default


def extension() -> Any:
    """Return the extension module, which is loaded if no call has done so."""
    return _load()


def process_state() -> dict[str, Any]:
    """Return the dictionary that stays when the package is imported a second time."""
    state: dict[str, Any] = _load().process_state
    return state


def _open(first: str) -> Any:
    """Return the extension for a call; log the fallback if this call opens the backend.

    Nothing is logged for a call that chooses the backend.
    """
    fresh = _ext is None
    ext = _load()
    if fresh and first not in _CHOOSING and os.environ.get("HALSTREAM_BACKEND", "auto") in ("", "auto"):
        log_fallback()
    return ext


def log_fallback() -> None:
    """Log, once in a process, why the automatic choice of a backend fell back to the host."""
    global _fallback_logged
    logging = sys.modules.get("logging")
    if _fallback_logged or logging is None:  # a program that has not imported it hears nothing below a warning
        return
    try:
        passed: list[str] = decode(_ext.pybuild_BackendPassed())
        if not passed or _ext.pybuild_Backend() != "host":
            return
    except RuntimeError:
        return  # the call that opens the backend raises it, too
    _fallback_logged = True
    reasons = "; ".join(passed)
    logging.getLogger(_PACKAGE).info("the host backend is used, as no other one can be: %s", reasons)


def replace(name: str, function: Callable[..., Any]) -> None:
    """Replace a function of the extension for all later calls."""
    ext, key = _load(), _camel(name)
    own = getattr(ext, key)
    for module in [m for n, m in list(sys.modules.items()) if n.startswith(_PACKAGE)]:
        for variable, value in list(vars(module).items()):
            if value is own:
                setattr(module, variable, function)
    setattr(ext, key, function)


#: Returns whether a wait can ever end; set by `halstream`, as the search for stalls imports this module.
judge_wait: Callable[[], int] | None = None
#: The same for an event loop whose tasks look again and again: is given its list of waits.
judge_loop: Callable[[Any], object] = bool


def _endless() -> int:
    """Called by the extension: return 0 if a wait can end or that is not known."""
    return 0 if judge_wait is None or sys.is_finalizing() else judge_wait()


def _camel(name: str) -> str:
    # What the extension exports as pybuild_StreamQuery is stream_query here.
    return "pybuild_" + "".join(part.capitalize() for part in name.split("_"))


class _Deferred:
    """Stands for a function of the extension until that is loaded."""

    __slots__ = ("camel",)

    def __init__(self, name: str) -> None:
        self.camel = _camel(name)

    def __call__(self, *args: Any) -> Any:
        return getattr(_open(self.camel), self.camel)(*args)


def loaded() -> bool:
    """Return True once the extension is loaded."""
    return _ext is not None


if TYPE_CHECKING:
    # The functions of the extension with their types, and `raw` for each of their names.
    from ._functions import *  # noqa: F403
else:

    def raw(name: str) -> Any:
        """Return a function of the extension whose errors the caller translates.

        To be kept in a global variable of a module of this package, where it is
        replaced when the extension is loaded.
        """
        return _Deferred(name) if _ext is None else getattr(_ext, _camel(name))

    def __getattr__(name: str) -> Any:
        """Return a function of the extension that raises the core's errors."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            function = getattr(_open(_camel(name)), _camel(name))
        except AttributeError:
            raise AttributeError(f"the extension has no function {_camel(name)}") from None

        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except RuntimeError as exc:
                raise error(exc) from None

        globals()[name] = call
        return call


def taking_objects(name: str) -> Callable[..., Any]:
    """Return a function of the extension that takes or makes Python's objects; buildsupport/pybindgen.py has them.

    To be kept as one that `raw` returns.
    """
    if _ext is not None:
        return getattr(_ext, name)  # type: ignore[no-any-return]
    deferred = _Deferred("")
    deferred.camel = name
    return deferred


def named(name: str) -> Callable[..., Any]:
    """Return what `raw` does for a name that is only known when the program runs."""
    function: Callable[..., Any] = raw(name)  # type: ignore[call-overload]
    return function


def error(exc: BaseException, kinds: Mapping[str, Callable[..., BaseException]] = KINDS) -> BaseException:
    """Return the exception of `kinds` for an error that the core reported.

    Raises
    ------
    BaseException
        `exc` itself, with its cause and context, if the core did not write it (a
        wrong argument type, or what a signal handler of the program raised); and
        the exception of a checked function, in place of the core's report of it.
    """
    if isinstance(exc, HalError):
        kind, code, operation, text = exc.kind, exc.code, exc.operation, str(exc)
        if type(exc) is not KINDS.get(kind) or kinds is KINDS:
            return exc
    else:
        message = str(exc)
        if not message.startswith(ERROR_PREFIX):
            _raise_unchanged(exc)
        record: ErrorRecord = decode(message[len(ERROR_PREFIX) :])
        kind, code, operation, text = record["kind"], record["code"], record["operation"], record["text"]
        original = checked.pop(record["token"], None) if record["token"] else None
        if original is not None:
            _raise_unchanged(original)
    return kinds.get(kind, KINDS.get(kind, HalError))(text, code=code, operation=operation)


def _raise_unchanged(exc: BaseException) -> NoReturn:
    """Raise an exception of the program with the cause and the context that it has.

    The callers raise what `error` returns "from None" while they handle the
    core's exception; that would replace both.
    """
    cause, context, suppressed = exc.__cause__, exc.__context__, exc.__suppress_context__
    try:
        raise exc
    finally:
        exc.__cause__, exc.__context__, exc.__suppress_context__ = cause, context, suppressed
        del exc, cause, context  # its traceback refers to this frame


def nanoseconds(timeout: float | None) -> int:
    """Return a time limit as the extension takes it: -1 for none.

    Parameters
    ----------
    timeout : float or None
        Seconds.

    Raises
    ------
    InvalidValueError
        If it is negative, infinite or not a number.
    TypeError
        If it is of another type.
    """
    if timeout is None:
        return -1
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds or None, not {timeout!r}")
    if not (timeout >= 0 and math.isfinite(timeout)):
        raise InvalidValueError(
            f"timeout must be a finite number of seconds >= 0, not {timeout!r}; use None to wait for ever"
        )
    return min(int(timeout * 1e9), 2**62)


def wait(function: Callable[[int, int], int], ident: int, timeout: float | None) -> bool:
    """Call a waiting function of the extension; False when the limit came first."""
    return function(ident, nanoseconds(timeout)) == 1
