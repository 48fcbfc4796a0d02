"""Python files that are loaded with other source than they have: patches are tried without a change of any file."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from .edit import lines_of

__all__ = ["Replaced", "install"]


class Replaced:
    """The files that have other source in this process.

    Parameters
    ----------
    sources : mapping
        The source of each file by its path.

    Attributes
    ----------
    loaded : set of str
        Grows by each of the paths whose file is loaded.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = {os.path.realpath(file): (file, source) for file, source in sources.items()}
        self.loaded: set[str] = set()

    def take(self, path: str) -> str | None:
        """Return the source to be compiled under a path, None for the file's own."""
        file, source = self._sources.get(os.path.realpath(path), ("", ""))
        if not file:
            return None
        self.loaded.add(file)
        # Without a time, so that linecache does not compare it with the file.
        linecache.cache[path] = len(source), None, lines_of(source), path
        return source


def install(sources: Mapping[str, str]) -> Replaced:
    """Have files imported with other source, in this process and for all its time.

    No bytecode is written: later runs would take that of the patched source for that of the file.

    Parameters
    ----------
    sources : mapping
        The source of each file by its path.

    Returns
    -------
    Replaced
        For who compiles a file without an import.
    """
    replaced = Replaced(sources)
    plain = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = replaced.take(path)
        if source is None:
            return plain(self, fullname)
        # As text: the encoding that the file names is not the one of these bytes.
        code: CodeType = self.source_to_code(source, path)
        return code

    sys.dont_write_bytecode = True
    loader: Any = SourceFileLoader
    loader.get_code = get_code
    return replaced
