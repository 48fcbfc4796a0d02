"""Tensors as paddle 3.3 writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

# As paddle.set_printoptions has them: digits, the size from which parts are left out, and how many items remain.
_PRECISION, _THRESHOLD, _EDGE = 8, 1000, 3
_INDENT = 7


def text(value: Any, head: str) -> str:
    """Return what ``repr`` of a tensor shows; `value` is its contents."""
    return f"{head}\n{' ' * _INDENT}{_array(value)})"


def _array(value: Any) -> str:
    short = value.size > _THRESHOLD
    shown = _edges(value) if short else value
    signed = bool(value.dtype.kind in "fi" and (shown < 0).any())
    width = max((len(_item(v)) for v in shown.flat), default=0)
    return _nested(value, width, signed, short, _INDENT)


def _edges(value: Any) -> Any:
    for axis, length in enumerate(value.shape):
        if length > 2 * _EDGE:
            picked = [*range(_EDGE), *range(length - _EDGE, length)]
            value = np.take(value, picked, axis)
    return value


def _nested(value: Any, width: int, signed: bool, short: bool, indent: int) -> str:
    if value.ndim == 0:
        return _item(value[()])
    parts: list[str] = []
    for i in _positions(len(value), short):
        if i is None:
            parts.append("...")
        elif value.ndim == 1:
            parts.append(_padded(_item(value[i]), width, signed))
        else:
            parts.append(_nested(value[i], width, signed, short, indent + 1))
    between = ", " if value.ndim == 1 else "," + "\n" * (value.ndim - 1) + " " * (indent + 1)
    return f"[{between.join(parts)}]"


def _positions(length: int, short: bool) -> list[int | None]:
    if not short or length <= 2 * _EDGE:
        return list(range(length))
    return [*range(_EDGE), None, *range(length - _EDGE, length)]


def _padded(item: str, width: int, signed: bool) -> str:
    """Return an item in the common width; beside negative ones the others begin with a space."""
    if signed and len(item) < width and not item.startswith("-"):
        item = " " + item
    return item.ljust(width)


def _item(value: Any) -> str:
    if value.dtype.kind == "f":
        shown = f"{value:.0f}." if float(value).is_integer() else f"{value:.{_PRECISION}f}"
        if np.isnan(value):
            shown = "nan"
        elif np.isinf(value):
            shown = f"{value:.{_PRECISION}f}."
    elif value.dtype.kind == "c":
        return f"({value.real:.{_PRECISION}f}{value.imag:+.{_PRECISION}f}j)"
    else:
        shown = str(value)
    return shown
