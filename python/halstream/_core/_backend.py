"""Changing the backend: what the package keeps ends with it, unless the change is refused."""

from __future__ import annotations

import sys

from .. import _native
from .._records import encode
from .._runtime import runtime
from . import _hostfunc
from ._base import drain

__all__ = ["change"]


def change(name: str) -> None:
    """Use another backend from now on; see `halstream.use_backend`."""
    drain()
    kept = encode(list(runtime.kept_ids()))
    # Refused before anything is given up, where streams and events are the reason.
    _native.use_backend(name, kept, 1)
    for module, release in (("_memory._pools", "reset"), ("_kernel._launch", "forget")):
        # Both keep only what is made again when it is needed.
        loaded = sys.modules.get(f"halstream.{module}")
        if loaded is not None:
            getattr(loaded, release)()
    drain()
    _native.use_backend(name, kept, 0)
    _hostfunc.restart()
    runtime.reset()
    drain()
    if name == "auto":
        _native.log_fallback()
