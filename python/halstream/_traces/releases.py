"""Which operation ends each wait, and what a blocked stream waits for."""

from __future__ import annotations

import bisect

from .._native._constants import OP_GATE, OP_RECORD, OP_RESET, OP_WAIT, OP_WAIT_STREAM
from .log import POOL, Line, other_name

__all__ = ["Releases"]

# A shorter gap between operations is overhead of the runtime, not a wait that
# the program could avoid.
_NOTICEABLE_NS = 10_000


class Releases:
    """Which operation each wait waits for."""

    def __init__(self, log: list[Line], times: dict[int, tuple[int, int]]) -> None:
        self._times = times
        #: Waits for events and streams, by their numbers.
        self.waits: dict[int, Line] = {}
        self._made: dict[tuple[int, int], Line] = {}
        # Of each event: when its records were done, which they were.
        self._records: dict[int, list[tuple[int, int, Line]]] = {}
        self._before: dict[int, Line] = {}
        # Events that are set and reset: a wait is released by the record that set them.
        self._settable = {line.event for line in log if line.kind == OP_RESET}
        newest: dict[tuple[int, int], Line] = {}
        for line in log:
            if line.host or line.kind in POOL:
                continue
            if line.kind == OP_RECORD:
                self._made[line.event, line.version] = line
                if line.id in times:
                    self._records.setdefault(line.event, []).append((times[line.id][1], line.id, line))
            elif line.kind == OP_WAIT:
                self.waits[line.id] = line
                if not line.version:
                    self._settable.add(line.event)  # waited for before it was recorded
            elif line.kind == OP_WAIT_STREAM:
                self.waits[line.id] = line
                if (other := (line.other_device, line.other)) in newest:
                    self._before[line.id] = newest[other]
            newest[line.device, line.stream] = line
        for records in self._records.values():
            records.sort()

    def of(self, wait: Line) -> Line | None:
        """Return the operation that releases a wait, None where there was or is none."""
        if wait.kind == OP_WAIT_STREAM:
            return self._before.get(wait.id)
        if wait.event not in self._settable:
            return self._made.get((wait.event, wait.version))
        records = self._records.get(wait.event, [])
        began = self._times.get(wait.id, (-1, -1))[0]
        at = bisect.bisect_left(records, (began + 1,))
        return records[at - 1][2] if at else None

    def reason(self, line: Line, since: int, until: int | None) -> str:
        """Return what the head operation of a stream waited for between two times; '' if nothing."""
        if line.id in self.waits:
            origin = self.of(line)
            known = origin is not None and origin.id in self._times
            if until is None or (known and origin is not None and self._times[origin.id][1] > since):
                return "waits for " + (f"event {line.event}" if line.kind == OP_WAIT else other_name(line))
        if line.kind == OP_GATE and (until is None or until - since >= _NOTICEABLE_NS):
            return "waits for a gate"
        return "waits for its turn" if until is not None and until - since >= _NOTICEABLE_NS else ""
