"""The records that cross the boundary between Go and Python as JSON: how they are read and written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ._record_types import *  # noqa: F403
from ._record_types import RangeRecord

Range = tuple[int, int]  #: address and size in bytes


def decode(text: object) -> Any:
    """Return the record, or the list of records, of a text of the extension."""
    return _decoder()(text)[0]


@functools.cache
def _decoder() -> Callable[[object], tuple[Any, int]]:
    import json  # not at import, which stays fast

    return json.JSONDecoder().raw_decode  # type: ignore[return-value]


def encode(value: object) -> str:
    """Return the text of a record, or of a list of numbers, that a function of the extension takes."""
    import json

    return json.dumps(value)


def ranges(records: Iterable[RangeRecord]) -> tuple[Range, ...]:
    """Return ranges as addresses and sizes."""
    return tuple((record["start"], record["size"]) for record in records)
