"""cupy.cuda.memory_hooks (cupy 14.2.0)."""

from __future__ import annotations

from . import debug_print, line_profile
from .debug_print import DebugPrintHook
from .line_profile import LineProfileHook

__all__ = ["DebugPrintHook", "LineProfileHook", "debug_print", "line_profile"]
