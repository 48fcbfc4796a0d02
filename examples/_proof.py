"""Statements that a program proves by running: one line for each, and an exit code."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

# One thread for functions on streams, so that `order` can make them wait in line.
os.environ["HALSTREAM_HOST_THREADS"] = "1"

#: Seconds after which something that never ends counts as wrong.
LIMIT = 10.0


class Proof:
    """Counts and prints what held; `end` leaves the program."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, statement: str, holds: object) -> None:
        """Print one line; only True, not something like it, counts as proof."""
        if holds is not True:
            self.failed += 1
        print(("ok   " if holds is True else "FAIL ") + statement, flush=True)

    def raises(self, statement: str, kind: type[BaseException], call: Callable[..., object], *args: Any) -> None:
        """Prove that a call raises an exception of a class."""
        try:
            call(*args)
        except kind:
            self(statement, True)
        else:
            self(statement, False)

    def blocks(
        self,
        statement: str,
        wait: Callable[[], object],
        pending: Callable[[], bool],
        release: Callable[[], object],
    ) -> None:
        """Prove that `wait` holds the caller until `release` was called.

        Another thread looks at the work a thousand times once the caller is
        about to wait, then releases it. A `wait` that does not block returns
        meanwhile, which the order of the notes shows.
        """
        notes: list[object] = []
        about_to_wait = threading.Event()

        def later() -> None:
            about_to_wait.wait(LIMIT)
            notes.append(all(pending() for _ in range(1000)))
            notes.append("released")
            release()

        thread = threading.Thread(target=later, daemon=True)
        thread.start()
        about_to_wait.set()
        wait()
        notes.append("returned")
        thread.join(LIMIT)
        self(statement, notes == [True, "released", "returned"])

    def order(self, statement: str, expected: list[int], *streams: Any) -> None:
        """Give each stream a function while the only thread is busy; prove who ran when.

        Only where the runtime itself decides: a vendor's driver takes a priority as a hint.
        """
        import halstream

        if halstream.backend() != "host":
            print(f"--   {statement} (on the {halstream.backend()} backend a hint)", flush=True)
            return
        self(statement, self._order_of(*streams) == expected)

    def _order_of(self, *streams: Any) -> list[int]:
        import halstream

        busy, go = threading.Event(), threading.Event()
        order: list[int] = []

        def occupy() -> None:
            busy.set()
            go.wait(LIMIT)

        halstream.Stream(non_blocking=True).call(occupy)
        busy.wait(LIMIT)
        for number, stream in enumerate(streams):
            stream.call(order.append, number)
        end = time.monotonic() + LIMIT
        while not all("handed over" in s.describe() for s in streams) and time.monotonic() < end:
            pass
        go.set()
        for stream in streams:
            stream.synchronize()
        return order

    def end(self) -> NoReturn:
        """Leave with 0 if everything held, else with 1."""
        raise SystemExit(1 if self.failed else 0)
