"""Context: which device streams, events and memory belong to."""

from __future__ import annotations

from typing import Any

from ..._core._strict import strict
from ._arguments import missing_method, missing_property

__all__ = ["Context"]


class Context:
    """cuda.core.Context (1.2.2): the primary context of a device.

    Differences: there are no others, so that two are equal if they are of one device; `close` does nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Context objects cannot be instantiated directly. Please use Device or Stream APIs.")

    _ordinal: int

    @classmethod
    def _of(cls, ordinal: int) -> Context:
        new = object.__new__(cls)
        new._ordinal = ordinal
        return new

    @property
    def is_green(self) -> bool:
        """False: a primary context has all of its device."""
        return False

    @property
    def is_closed(self) -> bool:
        """False: a primary context stays."""
        return False

    def close(self) -> None:
        """Do nothing: a primary context stays."""

    handle = missing_property("cuda.core.Context.handle")
    resources = missing_property("cuda.core.Context.resources")
    create_stream = missing_method("cuda.core.Context.create_stream")

    def __eq__(self, other: object) -> bool:
        return self._ordinal == other._ordinal if isinstance(other, Context) else NotImplemented

    def __hash__(self) -> int:
        return hash((Context, self._ordinal))

    def __repr__(self) -> str:
        return f"<Context device={self._ordinal}>"


Context.__module__ = "halstream.cuda.core"
strict.add(Context)
