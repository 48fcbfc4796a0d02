"""`mindspore.device_context` of 2.10: counts and availability by target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from . import ascend, cpu, gpu

__all__ = ["ascend", "cpu", "gpu"]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
