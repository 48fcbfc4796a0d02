"""cuda: of NVIDIA's packages for Python, `cuda.core` (1.2.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core as _core  # first: it waits for a thread that is importing the package
from .._dialects._not_built import not_built
from . import core

__all__ = ["core"]

__getattr__: Callable[[str], Any] = not_built(__name__)
