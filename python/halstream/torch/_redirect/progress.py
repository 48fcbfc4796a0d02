"""How far a compilation is: one line with a bar and the time that is left on a terminal, else a line for each part."""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["Progress"]


class Progress:
    """A context in which parts of a compilation are done, whose number is known when the first one begins.

    Parameters
    ----------
    title : str
        What is compiled, shown before the bar.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = 0.0
        self._bar: Any = None  # a bar of rich, where there is a terminal and rich is installed
        self._task: Any = None

    def __enter__(self) -> Progress:
        self._began = time.monotonic()
        self._bar = _bar()
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, parts: int) -> None:
        """Say how many parts there are."""
        if self._bar is not None:
            self._bar.update(self._task, total=parts)

    def done(self, what: str) -> None:
        """Count a part; without a terminal a line says what was done."""
        if self._bar is not None:
            self._bar.advance(self._task)
        else:
            print(f"halstream:   {what}, {time.monotonic() - self._began:.0f} s", file=sys.stderr, flush=True)


def _bar() -> Any:
    """Return rich's display of progress, None where nobody would see it."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich import console, progress
    except ImportError:  # rich is an extra
        return None
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(elapsed_when_finished=True),
    )
    return progress.Progress(*columns, console=console.Console(stderr=True), transient=True)
