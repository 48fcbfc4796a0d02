"""Statements that a program proves by running: one line for each, and an exit code."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

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

    def raises(
        self, statement: str, kind: type[BaseException], call: Callable[..., object], *args: Any
    ) -> None:
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

    def end(self) -> NoReturn:
        """Leave with 0 if everything held, else with 1."""
        raise SystemExit(1 if self.failed else 0)
