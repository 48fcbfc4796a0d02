"""torch.version (2.15): `cuda` is the CUDA whose behaviour this follows, on every backend."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = "2.15.0"
cuda = "12.9"
debug = False
git_version = "Unknown"
hip: str | None = None
xpu: str | None = None
