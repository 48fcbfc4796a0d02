"""What is compared: rows, and for each side the Python that does a row.

Sides of one family have the same calls: halstream's dialect and the package
whose names it has. A side lacks the rows that it has no call for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: Rows by name: title, and the most executions of a batch (a driver's queue is not endless).
ROWS: dict[str, tuple[str, int]] = {
    "record": ("record of an event", 2000),
    "wait": ("wait of a stream for an event", 500),
    "query": ("query of a finished event", 2000),
    "wait_stream": ("wait of a stream for a stream", 500),
    "record_none": ("record of a new event", 1000),
    "event": ("a new event", 1000),
    "event_used": ("a new event and its first record", 1000),
    "stream": ("a new stream", 50),
    "with": ("`with stream:`", 2000),
    "current": ("current stream", 2000),
    "sync": ("synchronize of an idle stream", 2000),
    "host": ("function on the host, and synchronize", 100),
    "copy4k": ("copy of 4 KiB from pinned memory, and synchronize", 100),
    "copy64m": ("copy of 64 MiB from pinned memory, and synchronize", 5),
    "kernel": ("launch of a kernel", 200),
    "capture_fills": ("capture of 100 fills, and its executable", 20),
    "one_fills": ("launch of a graph of one fill", 200),
    "many_fills": ("launch of a graph of 100 fills", 20),
    "capture_kernels": ("capture of 100 kernels, and its executable", 20),
    "one_kernels": ("launch of a graph of one kernel", 200),
    "many_kernels": ("launch of a graph of 100 kernels", 20),
}
COPIES = {"copy4k": 4 << 10, "copy64m": 64 << 20}


@dataclass(frozen=True)
class Case:
    """How a side does a row: `before` and `after` run once for each batch, untimed."""

    statement: str
    before: str = "pass"
    after: str = "pass"


@dataclass
class Side:
    """A contestant: the names its statements use, and the rows it has."""

    name: str
    family: str
    version: str
    env: dict[str, Any]
    cases: dict[str, Case] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def own(self) -> bool:
        """Whether it is halstream's."""
        return self.name.startswith("halstream")

    def add(self, after: str = "s.synchronize()", /, **statements: str) -> None:
        """Add rows; after each batch the stream must be idle again."""
        for row, statement in statements.items():
            self.cases[row] = Case(statement, after=after)

    def part(self, rows: str, make: Callable[[], None]) -> None:
        """Add rows that need more than streams and events; a failure costs only these rows."""
        try:
            make()
        except Exception as exc:
            self.errors[rows] = f"{type(exc).__name__}: {exc}".splitlines()[0][:300]


class Sync:
    """A function for a stream, and how often it ran."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: Any) -> None:
        self.count += 1
