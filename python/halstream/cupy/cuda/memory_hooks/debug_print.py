"""cupy.cuda.memory_hooks.debug_print (cupy 14.2.0)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, ClassVar, TextIO

from .._errors import not_built as _not_built
from ..memory_hook import MemoryHook

__all__ = ["DebugPrintHook"]


class DebugPrintHook(MemoryHook):
    """cupy.cuda.memory_hooks.DebugPrintHook (14.2.0): a line of JSON for each thing done."""

    name: ClassVar[str] = "DebugPrintHook"

    def __init__(self, file: TextIO = sys.stdout, flush: bool = True) -> None:
        self.file = file
        self.flush = flush

    def _print(self, hook: str, figures: dict[str, Any]) -> None:
        keys = ("device_id", "size", "mem_size", "mem_ptr", "pmem_id")
        line: dict[str, Any] = {"hook": hook}
        line.update((key, figures[key]) for key in keys if key in figures)
        if "pmem_id" in line:
            line["pmem_id"] = hex(line["pmem_id"])
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
        if self.flush:
            self.file.flush()

    def alloc_postprocess(self, **kwargs: Any) -> None:
        """Print what a pool took of the device."""
        self._print("alloc", kwargs)

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Print what was taken of a pool."""
        self._print("malloc", kwargs)

    def free_postprocess(self, **kwargs: Any) -> None:
        """Print what went back to its pool."""
        self._print("free", kwargs)


__getattr__: Callable[[str], Any] = _not_built(__name__)
