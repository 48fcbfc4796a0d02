"""Assertions that fail in functions on streams: a test is to fail with them, wherever they run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from .._notes import explanation, point_to_page

__all__ = ["collect", "mark", "on_stream", "print_page", "taken"]

#: The code of the page that explains them.
_PAGE = "assertion-on-stream"


class _Collector:
    """Where assertions go while a test runs, and the hook that would take them otherwise."""

    into: list[AssertionError] | None = None
    hook: Any = None


@contextlib.contextmanager
def collect(into: list[AssertionError]) -> Iterator[None]:
    """Collect the assertions that fail in functions on streams while the context lasts.

    A program that sets `sys.unraisablehook` itself meanwhile gets them instead.
    """
    before = _Collector.into, _Collector.hook
    _Collector.into, _Collector.hook = into, sys.unraisablehook
    try:
        yield
    finally:
        _Collector.into, _Collector.hook = before


def mark(exc: BaseException) -> None:
    """Note in an exception that a function on a stream raised it."""
    with contextlib.suppress(Exception):  # of a class that forbids it
        exc._halstream_on_stream = True  # type: ignore[attr-defined]
        if isinstance(exc, AssertionError):
            point_to_page(exc, _PAGE)


def print_page(exc: BaseException) -> None:
    """Print the line that leads to the page on assertions of functions on streams, if an exception is one."""
    if isinstance(exc, AssertionError):
        print(explanation(_PAGE), file=sys.stderr)


def on_stream(exc: BaseException) -> bool:
    """Return whether a function on a stream raised an exception."""
    return vars(exc).get("_halstream_on_stream") is True


def taken(exc: BaseException) -> bool:
    """Return whether an exception that no call will raise was collected."""
    if _Collector.into is None or not isinstance(exc, AssertionError) or sys.unraisablehook is not _Collector.hook:
        return False
    _Collector.into.append(exc)
    return True
