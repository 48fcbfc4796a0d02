"""What all commands print about themselves."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from rich.console import Console

__all__ = ["bars", "fail", "say"]


def fail(text: str) -> NoReturn:
    """End the command with a sentence on stderr and exit code 2."""
    say(text)
    raise typer.Exit(2)


def say(text: str) -> None:
    """Print a line about the command itself on stderr; stdout is the script's."""
    print(f"halstream: {text}", file=sys.stderr, flush=True)


def bars() -> Console:
    """Return the console for displays of progress, which only a terminal shows."""
    return Console(stderr=True)
