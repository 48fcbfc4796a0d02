"""What all commands print about themselves."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperCommand

__all__ = ["App", "Command", "bars", "fail", "put", "say"]


class App(typer.Typer):
    """The commands; where stdout takes nothing, such as on a full disk, they end with a sentence and exit code 1."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        try:
            return super().__call__(*args, **kwargs)
        except OSError as exc:
            if not _of_printing(exc):
                raise
            # The interpreter writes what is left at its exit, and would report the same again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            say(f"stdout cannot be written: {exc.strerror or exc}")
            raise SystemExit(1) from None


class Command(TyperCommand):
    """A command that takes ``--sanitize=threads`` besides the flag ``--sanitize``, which takes no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._words(args)))

    def _words(self, args: list[str]) -> Iterator[str]:
        """Yield the words with that one as a flag of its own, up to the script."""
        valued = {name for one in self.params if not getattr(one, "is_flag", False) for name in one.opts}
        words = iter(args)
        for word in words:
            yield "--sanitize-on-threads" if word == "--sanitize=threads" else word
            if word in valued:
                yield from itertools.islice(words, 1)
            elif word == "--" or not word.startswith("-"):
                yield from words


def _of_printing(exc: OSError) -> bool:
    """Return whether an error was raised by what prints: a write has no file name that would tell."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(exc.__traceback__)]
    return frames[-1] == __name__ or frames[-1].partition(".")[0] in ("rich", "typer", "click")


def fail(text: str) -> NoReturn:
    """End the command with a sentence on stderr and exit code 2."""
    say(text)
    raise typer.Exit(2)


def put(text: str) -> None:
    """Print on stdout, at once, so that it fails within the command if it cannot be written."""
    print(text, flush=True)


def say(text: str) -> None:
    """Print a line about the command itself on stderr; stdout is the script's."""
    print(f"halstream: {text}", file=sys.stderr, flush=True)


def bars() -> Console:
    """Return the console for displays of progress, which only a terminal shows."""
    return Console(stderr=True)
