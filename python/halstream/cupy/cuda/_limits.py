"""How many bytes a pool may hold: limits by size or fraction, and the variable of the environment."""

from __future__ import annotations

import os
from typing import TypedDict

from ._memory_functions import memGetInfo

VARIABLE = "CUPY_GPU_MEMORY_LIMIT"


class Limit(TypedDict):
    """What `parse` finds: one of the two, or neither."""

    size: int | None
    fraction: float | None


def limit(size: int | None, fraction: float | None) -> int:
    """Return the bytes that a limit means, 0 for none.

    Raises
    ------
    ValueError
        A negative size, a fraction outside 0 to 1, or both given.
    """
    if fraction is None:
        wanted = 0 if size is None else int(size)
        if wanted < 0:
            raise ValueError(f"memory limit size out of range: {wanted}")
        return wanted
    if size is not None:
        raise ValueError("size and fraction cannot be specified at one time")
    if not 0 <= fraction <= 1:
        raise ValueError(f"memory limit fraction out of range: {fraction}")
    return int(fraction * memGetInfo()[1])


def parse(text: str | None = None) -> Limit:
    """Return the size or the fraction that a text names: bytes, or a percentage such as '50%'.

    None reads the variable CUPY_GPU_MEMORY_LIMIT, whose absence is no limit.

    Raises
    ------
    ValueError
        The text is neither.
    """
    text = os.environ.get(VARIABLE) if text is None else text
    if text is None:
        return {"size": None, "fraction": None}
    if text.endswith("%"):
        return {"size": None, "fraction": float(text[:-1]) / 100}
    return {"size": int(text), "fraction": None}
