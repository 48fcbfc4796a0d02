"""Call sites and stacks: where in the program a call was made, and how reports show it.

This is the one module that reads the stack of a site, and that decides which
frames are the program's own: not this package's, not those of installed
libraries or of Python itself, and not those of whatever runs the program.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from . import _native
from ._records import FrameRecord, decode

__all__ = [
    "OPTIMIZED",
    "ROOT",
    "Frame",
    "code_line",
    "dialect_of",
    "frame_line",
    "function_line",
    "innermost",
    "installed",
    "installed_frames",
    "is_library",
    "is_own",
    "is_program",
    "outside",
    "package",
    "parse",
    "program_frames",
    "real_torch",
    "shown",
    "site_line",
    "stack",
    "variables",
]

#: Folder of the package, with a separator at its end.
ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: The flag of code whose variables are in no dictionary. It is `inspect.CO_OPTIMIZED`; to import that takes long.
OPTIMIZED = 1

#: The redirection of the real torch, which is no part of the dialect that mirrors it.
_REDIRECT = os.path.join(ROOT, "torch", "_redirect") + os.sep
_DIALECTS = frozenset({"torch", "paddle", "mindspore", "cupy", "cuda", "acl"})
# The command, within which nothing but the program's own calls count.
_COMMAND = f"{ROOT}_cli{os.sep}"
# Frames from here on outward belong to whoever runs the program.
_RUNNERS = (
    _COMMAND, "/_pytest/", "/pluggy/", "/runpy.py", "<frozen runpy>", "/threading.py",
    "/concurrent/futures/", "/asyncio/", "/unittest/",
)  # fmt: skip
# What torch.compile calls its kernels by: text that has no file.
_LAUNCHER = ("<string>", "launcher")


def _never(_: type) -> bool:
    return False


def _nothing(_: Any) -> tuple[str, int]:
    return "", 0


class RealTorch:
    """Whether the real torch works on the runtime's streams in this process: reports then speak its names."""

    def __init__(self) -> None:
        self.dialect = ""  #: ``torch.cuda`` then
        self.paddle = False  #: the real Paddle works on them
        #: Returns address, size and name of the memory that its modules own.
        self.parameters: Callable[[], list[tuple[int, int, str]]] = list
        #: Whether a class is of its streams, events or tensors, and what such an object is, with the number of the
        #: stream or event, or the address on the device; '' for another one.
        self.is_object: Callable[[type], bool] = _never
        self.number_of: Callable[[Any], tuple[str, int]] = _nothing
        #: Returns the number of the thread's current stream; None: there is none.
        self.current: Callable[[], int] | None = None
        #: How many views of memory that streams copy from or to were handed out while a sanitizer was on.
        self.views = 0
        self._declare: Callable[[bool], None] | None = None
        self._sanitizing = False
        #: Called when it begins or ends to work on them.
        self.changed: Callable[[], None] = lambda: None

    @property
    def works(self) -> bool:
        """Whether the real torch or the real Paddle does."""
        return bool(self.dialect) or self.paddle

    def sanitizing(self, on: bool) -> None:
        """Have the host's accesses to pinned tensors declared while a sanitizer is on."""
        self._sanitizing = on
        if self._declare is not None:
            self._declare(on)

    def stands_for(
        self,
        is_object: Callable[[type], bool] = _never,
        number_of: Callable[[Any], tuple[str, int]] = _nothing,
        current: Callable[[], int] | None = None,
    ) -> None:
        """Set `is_object`, `number_of` and `current`."""
        self.is_object, self.number_of, self.current = is_object, number_of, current

    def declaring(self, declare: Callable[[bool], None] | None) -> None:
        """Set what switches such declarations on and off; None: nothing does."""
        if self._declare is not None and self._sanitizing:
            self._declare(False)
        self._declare = declare
        if declare is not None and self._sanitizing:
            declare(True)

    def device(self, ordinal: int) -> str:
        """Return what reports and traces call a device."""
        return f"cuda:{ordinal}" if self.dialect else f"device {ordinal}"


real_torch = RealTorch()


class Frame(NamedTuple):
    """A place in the program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{shown(self.file)}:{self.line}"


# -- files ----------------------------------------------------------------------


def shown(file: str) -> str:
    """Return a file's name relative to the working folder where it is in there."""
    here = os.path.abspath(os.curdir) + os.sep
    return file[len(here) :] if file.startswith(here) else file


@functools.cache
def _folders(*names: str) -> tuple[str, ...]:
    import sysconfig  # not at import, which stays fast

    found = {sysconfig.get_path(name) for name in names}
    return tuple(os.path.abspath(path) + os.sep for path in found if path)


def is_own(path: str) -> bool:
    """Return True for a file of this package."""
    return path.startswith(ROOT)


@functools.cache
def installed(path: str) -> str:
    """Return a file's path from the folder of its package on, '' for a file that was not installed."""
    for part in ("site-packages", "dist-packages"):
        _, found, rest = os.path.abspath(path).rpartition(os.sep + part + os.sep)
        if found:
            return rest
    return ""


@functools.cache
def package(path: str) -> str:
    """Return the package that a file was installed with, '' for other files."""
    return installed(path).partition(os.sep)[0].removesuffix(".py")


@functools.cache
def is_library(path: str) -> bool:
    """Return True for a file of the standard library."""
    full = os.path.abspath(path)
    return path.startswith("<frozen ") or (full.startswith(_folders("stdlib", "platstdlib")) and not package(full))


@functools.cache
def is_program(path: str) -> bool:
    """Return True for a file that neither this package, an installed one nor Python itself brought."""
    if path.startswith("<"):
        return not path.startswith("<frozen ")  # <stdin>, <string> and the like
    return not is_own(os.path.abspath(path)) and not is_library(path) and not package(path)


# -- call sites -------------------------------------------------------------------


def parse(text: str) -> tuple[Frame, ...]:
    """Return the frames of a stack that the runtime gave as text, innermost first."""
    records: list[FrameRecord] = decode(text) if text else []
    return tuple(_frame(record["file"], record["line"], record["function"]) for record in records)


#: The same object for the same place: many stacks share their outer frames.
_frame = functools.lru_cache(maxsize=65536)(Frame)


@functools.lru_cache(maxsize=65536)
def stack(site: int) -> tuple[Frame, ...]:
    """Return all frames of a call site, innermost first; none if the site is unknown."""
    return parse(str(_native.position_text(site))) if site else ()


def outside(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames of files that are not of this package."""
    return tuple(frame for frame in frames if not _is_own(frame.file))


@functools.lru_cache(maxsize=4096)
def _is_own(file: str) -> bool:
    return is_own(os.path.abspath(file))


@functools.lru_cache(maxsize=65536)
def program_frames(site: int) -> tuple[Frame, ...]:
    """Return the program's frames of a call site, innermost first.

    Frames of installed packages are left out unless nothing else is there, and
    so is everything from the runner of the program on outward. Those of Python's own library never count.
    """
    found = installed_frames(site)
    return tuple(frame for frame in found if is_program(frame.file)) or found


@functools.lru_cache(maxsize=65536)
def installed_frames(site: int) -> tuple[Frame, ...]:
    """Return the frames of a call site as `program_frames` does, and between them those of installed packages."""
    found: list[Frame] = []
    for frame in stack(site):
        if frame.file.startswith(_COMMAND) or (found and any(part in frame.file for part in _RUNNERS)):
            break
        if not _is_own(frame.file) and not is_library(frame.file) and (frame.file, frame.function) != _LAUNCHER:
            found.append(frame)
    return tuple(found)


def innermost(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the program; failing that, of a library; failing that, of this package."""
    others = outside(frames)
    candidates: Iterable[Frame] = (*(frame for frame in others if is_program(frame.file)), *others, *frames)
    return next(iter(candidates), None)


@functools.lru_cache(maxsize=65536)
def dialect_of(site: int) -> str:
    """Return the dialect whose function was called at a site, '' for the plain runtime."""
    found = ""
    for frame in stack(site):
        if not is_own(frame.file):
            break
        if frame.file.startswith(_REDIRECT):
            return real_torch.dialect
        first = frame.file[len(ROOT) :].split(os.sep)[0].removesuffix("x")  # cupyx is cupy's
        found = first if first in _DIALECTS else found
    return found


def site_line(site: int) -> str:
    """Return the program's innermost place of a call site as ``'file:line in function'``; '' if unknown."""
    frame = innermost(stack(site))
    return f"{frame.file}:{frame.line} in {frame.function}" if frame else ""


# -- frames and functions of the running program ------------------------------------


def code_line(code: CodeType, line: int) -> str:
    """Return ``'file:line in function'``."""
    return f"{code.co_filename}:{line} in {getattr(code, 'co_qualname', code.co_name)}"


def frame_line(frame: FrameType) -> str:
    """Return the place where a thread is: the innermost line that is the program's own."""
    at: FrameType | None = frame
    while at is not None and not is_program(at.f_code.co_filename):
        at = at.f_back
    at = at or frame
    return code_line(at.f_code, at.f_lineno)


def variables(frame: FrameType) -> dict[str, Any]:
    """Return what the variables of a frame stand for now; what the program drops later, the frame does not keep.

    Before CPython 3.13 `frame.f_locals` of a function is a dictionary that stays with the frame.
    """
    names = frame.f_locals
    found = dict(names)
    # While a function is traced, the interpreter itself gives the variables back what the dictionary has.
    stays = isinstance(names, dict) and frame.f_code.co_flags & OPTIMIZED and frame.f_trace is None
    # The frame, the variable here and the argument refer to it, and the program if it has asked for it.
    if stays and sys.getrefcount(names) <= 3:
        names.clear()
    return found


def function_line(function: Any) -> str:
    """Return a function's name and where it was defined, if that is known."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(function, "__code__", None)
    if code is None:
        # An object that can be called, or a method of one.
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else str(name)
