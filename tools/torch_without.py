"""Runs a program with a line of a module deleted: python torch_without.py MODULE LINE PROGRAM

Each line of the module that reads LINE is replaced by `pass`. `halstream run` runs this file as the program.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.util
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any


def deleted(source: str, line: str) -> tuple[str, int]:
    """Return the source without the line, and how often it was there."""
    return re.subn(rf"(?m)^(\s*){re.escape(line)}[ \t\r]*$", r"\1pass", source)


def codes(code: CodeType) -> Iterator[CodeType]:
    """Return the code of all functions in a piece of code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def delete_in_functions(file: str, line: str) -> int:
    """Delete the line in the functions of a module that torch imports itself; return how often it was there."""
    source, count = deleted(Path(file).read_text(), line)
    changed = {(code.co_qualname, code.co_firstlineno): code for code in codes(compile(source, file, "exec"))}
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__.co_filename == file:
            found.__code__ = changed[found.__code__.co_qualname, found.__code__.co_firstlineno]
    return count


class Without(importlib.abc.MetaPathFinder):
    """Imports the module without the line."""

    def __init__(self, module: str, line: str) -> None:
        self._module, self._line = module, line
        self.deleted = 0

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        loader: Any = spec.loader
        original = loader.get_data

        def get_data(file: str) -> bytes:
            data: bytes = original(file)
            if not file.endswith(".py"):
                raise OSError("compiled from the changed source")
            text, self.deleted = deleted(data.decode(), self._line)
            return text.encode()

        loader.get_data = get_data
        return spec


def main() -> None:
    module, line, program = sys.argv[1:4]
    without = Without(module, line)
    if module in sys.modules:
        without.deleted = delete_in_functions(str(sys.modules[module].__file__), line)
    else:
        sys.meta_path.insert(0, without)
    sys.argv, sys.path[0] = [program], str(Path(program).parent)
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        print(f"torch_without: {without.deleted} lines deleted", flush=True)


main()
