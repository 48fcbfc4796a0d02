"""Tokens of schedules under which scripts failed, kept in the user's cache until the scripts pass."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .._compiled import cache_folder
from .._errors import ScheduleError
from .._schedules.token import Token
from .children import Options

__all__ = ["forget", "recall", "remember"]


def _file(script: str, args: Sequence[str], options: Options) -> Path:
    """Return the file of a program: the same script in the same folder with other arguments is another program."""
    what = [script if options.module else os.path.abspath(script), os.getcwd(), list(args), options.module]
    name = hashlib.sha256(json.dumps(what).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cache_folder() / "tokens" / name


def recall(script: str, args: Sequence[str], options: Options) -> Token | None:
    """Return the token under which a program failed in an earlier run; None without one that can be read."""
    try:
        return Token.parse(_file(script, args, options).read_text(encoding="ascii"))
    except (OSError, ValueError, ScheduleError):
        return None


def remember(script: str, args: Sequence[str], options: Options, token: Token) -> None:
    """Keep a token; where it cannot be kept the next run searches again."""
    path = _file(script, args, options)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        os.replace(temporary, path)


def forget(script: str, args: Sequence[str], options: Options) -> None:
    """Drop the token of a program."""
    with contextlib.suppress(OSError):
        _file(script, args, options).unlink()
