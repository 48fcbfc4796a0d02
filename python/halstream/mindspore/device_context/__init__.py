"""`mindspore.device_context` of 2.10: counts and availability by target."""

from __future__ import annotations

from . import ascend, cpu, gpu

__all__ = ["ascend", "cpu", "gpu"]
