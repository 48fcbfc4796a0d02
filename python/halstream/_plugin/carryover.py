"""Pending work and findings that go from one test into the next, where nobody has waited for the work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from .. import _native

if TYPE_CHECKING:
    from .._checks.report import Report
    from .._checks.sanitize import sanitize

__all__ = ["CARRY_OVER", "CarryOver"]


class CarryOver:
    """Keeps the scope of a test until that of the next one has begun, if the host has not waited for all its work."""

    def __init__(self) -> None:
        self._scope: sanitize | None = None
        self._test = ""

    @contextlib.contextmanager
    def scope(self, test: str, scope: sanitize, keeps: Callable[[], bool]) -> Iterator[Report]:
        """Enter the scope of a run of a test; afterwards keep it open where `keeps` and there is a reason to.

        Raises
        ------
        NotSupportedError
            As `sanitize`.
        """
        if test == self._test:
            self.end()  # another run of the same test begins anew
        report = scope.__enter__()
        self.end()
        try:
            yield report
        finally:
            if keeps() and _native.check_unwaited():
                self._scope, self._test = scope, test
            else:
                scope.__exit__(None, None, None)

    def end(self) -> None:
        """Forget what the test before has done."""
        scope, self._scope, self._test = self._scope, None, ""
        if scope is not None:
            scope.__exit__(None, None, None)


#: In the stash of a `pytest.Config`: the one of the session.
CARRY_OVER = pytest.StashKey[CarryOver]()
