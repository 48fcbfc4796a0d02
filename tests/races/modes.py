"""Runs the programs under the sanitizer in each mode, and under torch's own; `python -m races MODE` prints the results.

It takes the interpreter of an environment with torch, and the folder of this package's parent on its path.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr, suppress
from typing import Any

import halstream as hs
import halstream.torch
from halstream.testing import schedule

from . import RACES

__all__ = ["CSAN", "errors_of_csan", "main", "report_of"]

CSAN = "csan"


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


def main(mode: str) -> None:
    """Print for each program in JSON whether it and its twin are reported."""
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
        print(json.dumps({"name": race.name, "found": found, "wrong": wrong}), flush=True)
