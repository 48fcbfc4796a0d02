"""torch.version (2.15): `cuda` is the CUDA whose behaviour this follows, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._errors import not_built as _not_built

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = "2.15.0"
cuda = "12.9"
debug = False
git_version = "Unknown"
hip: str | None = None
xpu: str | None = None


__getattr__: Callable[[str], Any] = _not_built(__name__)
