"""Whether strict mode is on: dialects then show only what the packages have that they mirror."""

from __future__ import annotations

import os

from ._runtime import State, runtime

__all__ = ["strict"]


class _Strict(State):
    """`enabled` is what HALSTREAM_STRICT says until `halstream.strict` is called."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("HALSTREAM_STRICT", "") not in ("", "0")


strict = runtime.add("strict mode", _Strict())
