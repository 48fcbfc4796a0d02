"""cupy.cuda.memory_hooks (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._errors import not_built as _not_built
from . import debug_print, line_profile
from .debug_print import DebugPrintHook
from .line_profile import LineProfileHook

__all__ = ["DebugPrintHook", "LineProfileHook", "debug_print", "line_profile"]


__getattr__: Callable[[str], Any] = _not_built(__name__)
