"""The records that cross the boundary between Go and Python as JSON.

The same records are in pybuild/records.go; tests/process/test_records.py compares
the names and types of the fields.
"""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["ERROR_PREFIX", "ErrorRecord", "decode"]

#: What the text of every error of the runtime begins with; an `ErrorRecord` follows.
ERROR_PREFIX = "halstream error: "


class ErrorRecord(TypedDict):
    """An error."""

    kind: str
    code: int  #: the vendor's, 0 without one
    operation: str
    token: int  #: of the checked function that raised, 0 without one
    text: str


def decode(text: object) -> Any:
    """Return the record, or the list of records, of a text of the extension."""
    import json  # not at import, which stays fast

    return json.loads(str(text))
