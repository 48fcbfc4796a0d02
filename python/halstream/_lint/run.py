"""Checks files: what `halstream lint` calls."""

from __future__ import annotations

import ast
import os
import sys
import tokenize
import traceback
import warnings
from collections.abc import Iterable, Iterator

from . import names, order, patterns
from .finding import Finding, silenced
from .guards import Guards
from .resolve import scopes

__all__ = ["check_file", "files"]


def files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the given files, and the Python files below the given folders in the order of their names, each once.

    Hidden folders and those of packages that others wrote are left out.

    Raises
    ------
    FileNotFoundError
        If there is none of such a name.
    """
    known = set()
    for path in _files(paths):
        if (real := os.path.realpath(path)) not in known:
            known.add(real)
            yield path


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            for folder, below, found in os.walk(path):
                below[:] = sorted(name for name in below if _is_own(os.path.join(folder, name)))
                inside = [
                    os.path.normpath(os.path.join(folder, name)) for name in sorted(found) if name.endswith(".py")
                ]
                yield from (file for file in inside if not _is_special(file))
        elif os.path.exists(path):
            yield path
        else:
            raise FileNotFoundError(f"there is no file {path}")


def _is_own(folder: str) -> bool:
    """Return whether a folder may have files of the program itself: it is no virtual environment, for example."""
    name = os.path.basename(folder)
    if name.startswith(".") or name in ("__pycache__", "node_modules", "site-packages"):
        return False
    return not os.path.exists(os.path.join(folder, "pyvenv.cfg"))


def _is_special(path: str) -> bool:
    """Return whether a path is a named pipe, a socket or a device: to open one may wait for ever."""
    return os.path.exists(path) and not os.path.isfile(path)


def check_file(path: str) -> list[Finding]:
    """Return what is found in a file, in the order of the lines; a file that cannot be read is a finding."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program's own literals
            tree = _parse(source, path)
        return _check(path, source, tree)
    except SyntaxError as exc:
        return [Finding(path, exc.lineno or 1, exc.offset or 1, "HS001", f"not read as Python: {exc.msg}")]
    except (OSError, UnicodeDecodeError, ValueError) as exc:
        return [Finding(path, 1, 1, "HS001", f"not read: {exc}")]
    except (RecursionError, MemoryError):
        return [Finding(path, 1, 1, "HS001", "not read: its expressions are nested too deeply")]


def _parse(source: str, path: str) -> ast.Module:
    """Return the tree of a source, which may be nested as deeply as in a program that Python itself starts.

    The frames of this process count as well, of which that program has none, and a tree in Python's own objects
    takes a few levels more than what is compiled.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + sum(1 for _ in traceback.walk_stack(None)) + 50)
    try:
        return ast.parse(source, path)
    finally:
        sys.setrecursionlimit(limit)


def _check(path: str, source: str, tree: ast.Module) -> list[Finding]:
    lines = source.splitlines()
    found = set()
    guards = Guards(tree)
    for scope in scopes(tree):
        for node, rule, text in (*names.check(scope, guards), *patterns.check(scope), *order.check(scope)):
            line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
            if not silenced(lines[line - 1] if line <= len(lines) else "", rule):
                found.add(Finding(path, line, column, rule, text))
    return sorted(found)
