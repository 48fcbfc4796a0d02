"""One run of a script under a schedule, in a process of its own.

The process that explores starts it as ``python -m halstream _child REQUEST
SCRIPT ARGS`` and reads the answer from a file.
"""

from __future__ import annotations

import contextlib
import gc
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _native
from .._checks import nearby
from .._checks.results import of_exception, of_finding
from .._core._assertions import collect
from .._errors import HalError, NotSupportedError
from .._records import OperationRecord
from .._schedules.block import Schedule
from .._schedules.execution import Execution, Failure
from .._schedules.explore import failure_of, traced
from .._schedules.turns import split
from .._traces.opening import at_opening
from . import script as _script
from .children import CannotRunError
from .forking import imported_later, settings_of_torch
from .redirecting import plug_into_paddle, provide_driver, redirect_torch
from .started import note_use, used

if TYPE_CHECKING:
    from .._checks.patched import Replaced
    from .._checks.report import Report

__all__ = ["main"]


class _Watch:
    """Starts a schedule, a log and the sanitizer when the script opens the runtime."""

    def __init__(self, spec: str, trace: bool, sanitize: bool, strict: bool, pages: bool) -> None:
        self._spec, self._trace = spec, trace
        self._sanitize, self._strict, self._pages = sanitize, strict, pages
        self._stack = contextlib.ExitStack()
        self._block: Schedule | None = None
        self._operations: list[OperationRecord] = []
        self.found: Report | None = None  #: the sanitizer's
        self.refused: HalError | None = None  #: why the schedule or the sanitizer is not in force

    def begin(self) -> None:
        """Begin a run; what an earlier one did does not count."""
        with contextlib.suppress(Exception):
            self._stack.close()
        block = Schedule(self._spec)
        try:
            if split(self._spec)[1] and threading.current_thread() is not threading.main_thread():
                raise NotSupportedError(
                    "threads take turns from the first use of the runtime on, which is to be in the main thread: "
                    "make a stream there before the script starts its threads"
                )
            block.__enter__()
        except HalError as exc:
            self.refused = exc
            raise
        self._block = block
        _native.positions(1)  # for the texts of errors
        if self._trace:
            self._operations = self._stack.enter_context(traced())
        if self._sanitize:
            from .._checks.sanitize import sanitize

            try:
                scope = sanitize(on="raise", strict=self._strict, pages=self._pages)
                self.found = self._stack.enter_context(scope)
            except HalError as exc:
                self.refused = exc
                raise

    def end(self, error: BaseException | None) -> tuple[Execution, BaseException | None]:
        """End the run; return it and what it failed with, if that is not `error`."""
        if self._block is None:
            return Execution(self._spec), error
        kind = None if error is None else type(error)
        for leave in (self._stack.__exit__, self._block.__exit__):
            try:
                leave(kind, error, None if error is None else error.__traceback__)
            except Exception as exc:
                error = error or exc
        return replace(self._block.execution, trace=tuple(self._operations)), error


def main(argv: Sequence[str]) -> int:
    """Run a script as a request says; return its exit code, 1 if something else failed.

    Parameters
    ----------
    argv : sequence of str
        The request as JSON (``spec``, ``result``: the answer's file, ``trace``,
        ``sanitize``, ``strict``, ``pages``, ``torch``, ``paddle``, ``cuda``, ``module``, ``nearby``,
        ``sources``: a file), the script, and its arguments.
    """
    request, script, args = json.loads(argv[0]), argv[1], argv[2:]
    watch = _Watch(
        request["spec"],
        request["trace"],
        request["sanitize"],
        request.get("strict", False),
        request.get("pages", False),
    )
    gc.disable()  # objects would be closed at another point of each run
    at_opening(watch.begin)
    if request.get("nearby"):
        nearby.want()
    targets = {"torch": redirect_torch, "paddle": plug_into_paddle, "cuda": provide_driver}
    for target in (target for name, target in targets.items() if request.get(name)):
        try:
            target(CannotRunError)
        except CannotRunError as exc:
            return _answer(request["result"], {"refused": str(exc)}, 2)
    if request.get("torch"):
        note_use(f"{request['result']}.used")
    replaced = _other_sources(request.get("sources", ""))
    failed: list[AssertionError] = []
    with collect(failed):
        return _judged(request, watch, script, args, replaced, failed)


def _judged(
    request: dict[str, Any],
    watch: _Watch,
    script: str,
    args: Sequence[str],
    replaced: Replaced | None,
    failed: list[AssertionError],
) -> int:
    """Run the script and write the answer; assertions of its functions on streams are in `failed` by then."""
    settings = settings_of_torch()
    outcome = _script.run(script, args, request.get("module", False), replaced)
    if watch.refused is not None:
        return _answer(request["result"], {"refused": str(watch.refused)}, 2)
    if outcome.code == _script.INTERRUPTED and isinstance(outcome.error, KeyboardInterrupt):
        return outcome.code
    error = outcome.error
    if error is None and outcome.code:
        error = SystemExit(outcome.code)  # whatever is pending is dropped then
    execution, wrong = watch.end(error)
    for exc in failed:
        _script.print_exception(exc, script)
    wrong = wrong or next(iter(failed), None)
    failure = None
    if isinstance(wrong, SystemExit):
        failure = Failure(f"exit code {outcome.code}")
    elif wrong is not None:
        failure = failure_of(wrong)
        if wrong is not outcome.error and wrong not in failed:
            print(f"{failure.type}: {wrong}", file=sys.stderr)
    answer = {
        "order": execution.order,
        "calls": execution.calls,
        "fingerprint": execution.fingerprint,
        "steps": execution.steps,
        "turns": execution.turns,
        "points": execution.points,
        "uncontrolled": execution.uncontrolled,
        "handovers": execution.handovers,
        "failure": failure and asdict(failure),
        "trace": execution.trace,
        "sites": _sites(execution.trace),
        "fault": None if wrong is None else of_exception(wrong),
        "elsewhere": used(),
        "later": imported_later(settings) if request.get("torch") else [],
        "loaded": sorted(replaced.loaded) if replaced is not None else [],
        "results": [of_finding(finding) for finding in watch.found.all] if watch.found is not None else [],
    }
    return _answer(request["result"], answer, outcome.code or int(wrong is not None))


def _other_sources(file: str) -> Replaced | None:
    """Have files loaded with the sources of a file of JSON, if one is given."""
    if not file:
        return None
    from .._checks.patched import install

    return install(json.loads(Path(file).read_text(encoding="utf-8")))


def _sites(operations: Sequence[OperationRecord]) -> dict[int, str]:
    """Return the stacks of the sites of operations: another process cannot ask for them."""
    numbers = {one["site"] for one in operations}
    return {number: str(_native.position_text(number)) for number in numbers if number}


def _answer(file: str, answer: dict[str, Any], code: int) -> int:
    with open(file, "w", encoding="utf-8") as stream:
        json.dump(answer, stream)
    return code
