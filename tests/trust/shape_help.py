"""What the figures for the programs by shape are: lines put in literally, tokens, runs in strict mode."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import corpus
import halstream as hs
from corpus.shapes import SHAPES, Shape
from halstream._checks.edit import apply, edits
from halstream._checks.remedy import remedy
from halstream._core import _current
from halstream._schedules.block import schedule
from halstream.testing import explore


def report_of(function: Callable[[], None], **options: bool) -> hs.Report:
    """Return what one run in the order of the calls finds."""
    try:
        with schedule("fifo"), hs.sanitize(on="collect", **options) as report:
            function()
    finally:
        _current.reset()
    return report


def found(shape: Shape) -> bool:
    """Whether one run reports the broken program."""
    report = report_of(shape.broken)
    return bool(report.races or report.refills)


def silent(shape: Shape) -> bool:
    """Whether one run of the twin reports nothing but notes of a query as the only order."""
    return {finding.category for finding in report_of(shape.fixed).all} <= {"query"}


def reaches_explained_stall(shape: Shape) -> bool:
    """Whether the broken program ends with an error that says what waits for what."""
    try:
        with schedule("fifo"):
            shape.broken()
    except hs.StallError as exc:
        return "this wait can never end" in str(exc) and " waits " in str(exc)
    finally:
        _current.reset()
    return False


def found_strictly(shape: Shape, **options: bool) -> bool:
    """Whether one run in strict mode does, or fails for a function of unknown accesses."""
    try:
        with schedule("fifo"), hs.sanitize(strict=True, **options):
            shape.broken()
    except hs.UnorderedAccessError:
        return True
    finally:
        _current.reset()
    return False


def silenced(shape: Shape, folder: Path) -> bool:
    """Whether the lines that the report suggests, put into the program as they are, leave nothing to report."""
    changes = [edits(remedy(finding)) for finding in report_of(shape.broken)]
    if not changes or not all(changes):
        return False
    made = [one for several in changes for one in several]
    name = f"fixed_{shape.name}"
    shutil.copytree(Path(corpus.__file__).parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in {one.file for one in made}:
        copy = folder / name / Path(file).name
        copy.write_text(apply(copy.read_text(), [one for one in made if one.file == file]))
    before = dict(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        changed = importlib.import_module(f"{name}.shapes").SHAPES[SHAPES.index(shape)]
        return not report_of(changed.broken)
    except (hs.HalError, AssertionError):
        return False
    finally:
        sys.path.remove(str(folder))
        for module in set(sys.modules) - set(before):
            if module.startswith(name):
                del sys.modules[module]


def token_of(function: Callable[[], None], schedules: int = 50, threads: bool = False) -> str:
    """Return the token of a schedule under which a program fails, or nothing."""
    try:
        explore(function, schedules=schedules, threads=threads)
    except (AssertionError, hs.StallError) as exc:
        token = re.search(r"hs1-[\w.+-]*\w", "\n".join([str(exc), *getattr(exc, "__notes__", ())]))
        return token[0] if token else ""
    finally:
        _current.reset()
    return ""


def fails(function: Callable[[], None], token: str) -> bool:
    """Whether a program fails under the schedule of a token."""
    try:
        with schedule(token):
            function()
    except (AssertionError, hs.StallError):
        return True
    finally:
        _current.reset()
    return False
