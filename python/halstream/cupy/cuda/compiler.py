"""cupy.cuda.compiler (14.2.0): the error of a CUDA source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._errors import CompileError
from ._errors import not_built as _not_built

__all__ = ["CompileException"]


class CompileException(CompileError):
    """cupy.cuda.compiler.CompileException (14.2.0); also the core's `CompileError`."""

    def __init__(self, msg: str, source: str, name: str, options: tuple[str, ...], backend: str = "nvrtc") -> None:
        super().__init__(msg, operation="compile", log=msg)
        self.source = source
        self.name = name
        self.options = options
        self.backend = backend

    def __reduce__(self) -> Any:
        return type(self), (self.log, self.source, self.name, self.options, self.backend)

    def __repr__(self) -> str:
        return str(self)

    def get_message(self) -> str:
        """Return the compiler's words."""
        return self.log

    def dump(self, f: Any) -> None:
        """Write the error and the source with the numbers of its lines to a file."""
        lines = self.source.split("\n")
        width = len(str(len(lines)))
        f.write(f"{self.backend.upper()} compilation error: {self}\n-----\n")
        f.write(f"Name: {self.name}\nOptions: {' '.join(self.options)}\nCUDA source:\n")
        for number, line in enumerate(lines, 1):
            f.write(f"{number:0{width}d} {line.rstrip()}\n")
        f.write("-----\n")
        f.flush()


__getattr__: Callable[[str], Any] = _not_built(__name__)
