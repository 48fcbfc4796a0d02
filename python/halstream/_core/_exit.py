"""The exit code of a process in which a tool has found something."""

from __future__ import annotations

from .. import _native

__all__ = ["FOUND", "exit_with"]

#: Of a process that would have ended with 0, as ThreadSanitizer's.
FOUND = 66


def exit_with(code: int = FOUND) -> None:
    """Let this process end with a code if its own is 0. For functions that run at the interpreter's exit, too."""
    _native.exit_code(code)
