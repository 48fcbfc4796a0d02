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

__all__ = ["install"]


def install(sources: Mapping[str, str]) -> set[str]:
    """Have files loaded with other source, in this process and for all its time.

    No bytecode is written: later runs would take that of the patched source for that of the file.

    Parameters
    ----------
    sources : mapping
        The source of each file by its path.

    Returns
    -------
    set of str
        Grows by each of the paths whose file is loaded.
    """
    patched = {os.path.realpath(file): (file, source) for file, source in sources.items()}
    loaded: set[str] = set()
    plain = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        file, source = patched.get(os.path.realpath(path), ("", ""))
        if not file:
            return plain(self, fullname)
        loaded.add(file)
        # Without a time, so that linecache does not compare it with the file.
        linecache.cache[path] = len(source), None, lines_of(source), path
        code: CodeType = self.source_to_code(source.encode(), path)
        return code

    sys.dont_write_bytecode = True
    replaced: Any = SourceFileLoader
    replaced.get_code = get_code
    return loaded
