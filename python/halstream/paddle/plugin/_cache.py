"""The folder with compiled libraries for Paddle.

What is known of a library lies beside its folder, since Paddle loads every file in that folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from ..._compiled import Compiled, digest
from ._errors import PluginError

__all__ = ["find", "locked", "store"]

_compiled = Compiled("paddle", "library for Paddle", PluginError)
locked = _compiled.locked


def find(key: str, name: str) -> Path | None:
    """Return a library that was stored as `key`, None if there is none that is whole.

    Raises
    ------
    PluginError
        If there is one, but others could have written it.
    """
    path = _compiled.folder() / key / name
    if not path.is_file():
        return None
    for part in (path.parent, path):
        _compiled.check_private(part)
    try:
        known = json.loads(path.parent.with_suffix(".json").read_text())["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return path if known == digest(path) else None


def store(key: str, make: Callable[[Path], Path]) -> Path:
    """Let `make` compile in an empty folder, and keep its result; the caller holds the lock of the build."""

    def note(target: Path, content: str) -> None:
        new = target.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps({"sha256": content}))
        new.replace(target.with_suffix(".json"))

    return _compiled.store(key, make, beside=note)
