"""Runs a program with a line of a module deleted: python torch_without.py MODULE LINE PROGRAM

Each line of the module that reads LINE is replaced by `pass`. `halstream run` runs this file as the program.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import re
import runpy
import sys
from typing import Any


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
            text, self.deleted = re.subn(rf"(?m)^(\s*){re.escape(self._line)}[ \t]*$", r"\1pass", data.decode())
            return text.encode()

        loader.get_data = get_data
        return spec


def main() -> None:
    module, line, program = sys.argv[1:4]
    without = Without(module, line)
    sys.meta_path.insert(0, without)
    sys.argv = [program]
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        print(f"torch_without: {without.deleted} lines deleted", flush=True)


main()
