"""Running a program as ``python script.py`` or ``python -m module`` does, within the process of a command."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import runpy
import sys
import threading
import types
import zipfile
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, NamedTuple

from .._errors import StallError

if TYPE_CHECKING:
    from .._checks.patched import Replaced

__all__ = ["Outcome", "check", "print_exception", "run"]

#: The exit code that a shell reports for a program that Ctrl-C ended.
INTERRUPTED = 130


class Outcome(NamedTuple):
    """How a script ended."""

    code: int  #: the exit code that ``python script.py`` would have given
    error: BaseException | None  #: the exception that ended it, `SystemExit` apart


def check(script: str, module: bool = False) -> None:
    """Raise `FileNotFoundError` if there is nothing to run under a path, or under the name of a module."""
    if module:
        _search_here()
        top = script.partition(".")[0]  # looking for more would execute the package
        if not top.isidentifier() or importlib.util.find_spec(top) is None:
            raise FileNotFoundError(f"there is no module {script!r}")
        return
    if not os.path.exists(script):
        raise FileNotFoundError(f"there is no script {script!r}")
    if os.path.isdir(script) and not os.path.exists(os.path.join(script, "__main__.py")):
        raise FileNotFoundError(f"the folder {script!r} has no __main__.py")


def run(script: str, args: Sequence[str], module: bool = False, replaced: Replaced | None = None) -> Outcome:
    """Run a script, or a module by its name, as ``__main__`` until its last thread that is no daemon ends.

    Its folder comes first on `sys.path` and `sys.argv` is its own, as if Python
    had been given the script. What it leaves in both stays, for the functions
    that run at the interpreter's exit. An exception is printed as Python would.
    `replaced` has the source of a script that is run with another one than its file's.
    """
    sys.argv = [script, *args]
    if module:
        _search_here()
    elif not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    outcome = Outcome(0, None)
    try:
        if module:
            _execute_module(script)
        else:
            _execute(script, replaced)
    except SystemExit as exc:
        outcome = Outcome(_code(exc), None)
    except KeyboardInterrupt as exc:
        outcome = Outcome(INTERRUPTED, exc)
    except BaseException as exc:
        outcome = Outcome(1, exc)
    if outcome.error is not None:
        print_exception(outcome.error, sys.argv[0] if module else script)
    return _end_threads(outcome)


def _execute(script: str, replaced: Replaced | None) -> None:
    if os.path.isdir(script) or zipfile.is_zipfile(script) or script.endswith(".pyc"):
        runpy.run_path(script, run_name="__main__")
        return
    other = None if replaced is None else replaced.take(script)
    with io.open_code(os.path.abspath(script)) as file:
        code = compile(file.read() if other is None else other, script, "exec", dont_inherit=True)
    # The module stays: threads and processes that outlive the script look for it.
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=script, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _search_here() -> None:
    """Look for modules in the working folder first, as ``python -m`` does."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()


def _execute_module(name: str) -> None:
    spec = _spec(name)
    code: CodeType | None = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    if code is None:
        print(f"No code object available for {spec.name}", file=sys.stderr)
        raise SystemExit(1)
    sys.argv[0] = spec.origin or name
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=spec.origin,
        __builtins__=builtins,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _spec(name: str) -> ModuleSpec:
    """Return what is to be executed for a module: of a package its ``__main__``."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as exc:
        if exc.name is None or not f"{name}.".startswith(f"{exc.name}."):
            raise  # an import within the package
        spec = None
    if spec is None or not hasattr(spec.loader, "get_code"):
        print(f"{sys.executable}: No module named {name}", file=sys.stderr)
        raise SystemExit(1)
    return spec


def _code(exc: SystemExit) -> int:
    """Return the exit code of a `SystemExit`, and print its text if it has one."""
    if exc.code is None:
        return 0
    if isinstance(exc.code, int):
        return exc.code & 0xFF
    print(exc.code, file=sys.stderr)
    return 1


def _end_threads(outcome: Outcome) -> Outcome:
    """Do with the threads what the interpreter does when the main thread's code has ended; return the new outcome.

    `threading._shutdown` calls what libraries have registered, by which pools of threads end, lets the main thread
    count as ended, and waits for the threads that are no daemons. The interpreter calls it again when it ends
    itself; it returns at once then. Where it raised, the second call must not wait for the same threads again:
    it raises the same exception, which the interpreter prints.
    """
    end: Callable[[], None] = threading._shutdown  # type: ignore[attr-defined]
    try:
        end()
    except BaseException as exc:
        error = exc

        def again() -> None:
            raise error

        threading._shutdown = again  # type: ignore[attr-defined]
        if isinstance(exc, KeyboardInterrupt):
            return outcome._replace(code=outcome.code or INTERRUPTED)
        if isinstance(exc, StallError):
            return Outcome(outcome.code or 1, outcome.error or exc)
    return outcome


def print_exception(exc: BaseException, script: str) -> None:
    """Print an exception with the frames of the script, not of what runs it."""
    exc = exc.with_traceback(_own(exc.__traceback__, script))
    sys.excepthook(type(exc), exc, exc.__traceback__)


def _own(frames: TracebackType | None, script: str) -> TracebackType | None:
    """Return a traceback from its first frame in the script on; None without any."""
    inside = os.path.join(script, "__main__.py")
    while frames is not None and frames.tb_frame.f_code.co_filename not in (script, inside):
        frames = frames.tb_next
    return frames
