"""Places in the program, as texts: of frames, functions and call sites."""

from __future__ import annotations

import functools
import os
import sysconfig
from types import CodeType, FrameType
from typing import Any

from .. import _native
from .._root import ROOT

__all__ = ["code_line", "frame_line", "function_line", "is_library", "is_own", "is_program", "package", "site_line"]



@functools.cache
def _folders(*names: str) -> tuple[str, ...]:
    found = {sysconfig.get_path(name) for name in names}
    return tuple(os.path.abspath(path) + os.sep for path in found if path)


def is_own(path: str) -> bool:
    """Return True for a file of this package."""
    return path.startswith(ROOT)


@functools.cache
def package(path: str) -> str:
    """Return the package that a file was installed with, '' for other files."""
    for part in ("site-packages", "dist-packages"):
        _, found, rest = os.path.abspath(path).rpartition(os.sep + part + os.sep)
        if found:
            return rest.partition(os.sep)[0].removesuffix(".py")
    return ""


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


def site_line(site: int) -> str:
    """Return the place of a call site: the innermost line outside of this package; '' if unknown."""
    if not site:
        return ""
    frames = [line.split("\x1f") for line in str(_native.position_text(site)).split("\n") if line]
    outside = [frame for frame in frames if not is_own(frame[0])]
    for path, line, function in [*(f for f in outside if is_program(f[0])), *outside, *frames][:1]:
        return f"{path}:{line} in {function}"
    return ""
