"""Runs the programs under the sanitizer in each mode, and under torch's own; `python -m races MODE` prints the results.

It takes the interpreter of an environment with torch, and the folder of this package's parent on its path.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import halstream as hs
import halstream.torch
from halstream.testing import schedule

from . import RACES, Race

__all__ = ["CSAN", "errors_of_csan", "main", "mended", "report_of"]

CSAN = "csan"
_SUGGESTED = re.compile(
    r"(?m)^(?:  fix:|       and) (before|after) (?:\S*/)?(\w+\.py):(\d+)(?:, or later, .*)?(?: \(not tried\))?\n +(.+)$"
)


def _alone(program: Callable[[], None]) -> None:
    """Run a program that may find its result wrong, and wait for all that it left."""
    import torch

    with suppress(AssertionError):  # a broken program on real threads
        program()
    torch.cuda.synchronize()


def _settle() -> None:
    """Leave no free memory of earlier programs: which block a tensor gets is then the program's own doing."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def report_of(program: Callable[[], None], mode: str) -> Any:
    """Return the sanitizer's report on one run in one of `MODES`."""
    _settle()
    in_order = nullcontext() if mode == "threads" else schedule("fifo")
    with in_order, hs.sanitize(on="collect", pages=mode == "pages") as report:
        _alone(program)
    return report


def errors_of_csan(program: Callable[[], None]) -> int:
    """Return how many errors torch's own sanitizer of streams finds in one run; it stops at the first operator."""
    from torch.cuda import _sanitizer as csan

    _settle()
    mode = csan.CUDASanitizerDispatchMode()
    with mode, redirect_stderr(io.StringIO()):  # which it prints the errors to as well
        mode.event_handler._handle_device_synchronization()
        try:
            _alone(program)
        except csan.CUDASanitizerErrors as error:
            return len(error.errors)
    return 0


def mended(race: Race, report: Any) -> bool:
    """Return whether the lines that a report suggests, put into the program as they stand, let it run in silence."""
    path = Path(race.load().__file__ or "")
    lines = path.read_text().splitlines()
    places = {(int(at), where, line) for where, file, at, line in _SUGGESTED.findall(str(report)) if file == path.name}
    for at, where, line in sorted(places, reverse=True):  # from the end, so that the numbers before stay right
        indentation = lines[at - 1][: len(lines[at - 1]) - len(lines[at - 1].lstrip())]
        lines.insert(at - 1 if where == "before" else at, indentation + line)
    program = ModuleType(path.stem)
    try:
        exec(compile("\n".join(lines) + "\n", path.name, "exec"), vars(program))
        return bool(places) and not report_of(program.broken, "fifo").all
    except Exception:  # whatever a wrong line raises
        return False


def main(mode: str) -> None:
    """Print for each program in JSON whether it and its twin are reported, and suggested lines mend it."""
    halstream.torch.redirect()
    import torch

    torch.cuda.init()
    for race in RACES:
        if mode == CSAN:
            found, wrong = (bool(errors_of_csan(program)) for program in (race.broken, race.fixed))
            torch.cuda.synchronize()
        else:
            report = report_of(race.broken, mode)
            found = bool(report.races or report.refills)
            wrong = bool(report_of(race.fixed, mode).all)
        row = {"name": race.name, "found": found, "wrong": wrong}
        if mode == "fifo":
            row["mended"] = found and mended(race, report)
        print(json.dumps(row), flush=True)
