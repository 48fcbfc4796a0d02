"""Suggested lines tried on a script: it runs again with them, from copies of the source in processes of their own."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from .._checks.applying import NOT_PROVEN, Verdict, files_of, sources_of, unordered, verdict
from .._checks.results import Result
from .._schedules.search import Settings, search
from .children import CannotRunError, Children, Options
from .running import searching

__all__ = ["noted", "tried"]


def noted() -> Callable[[], None]:
    """Return a function that sets the working folder and the environment back to what they are now.

    A script that runs within this process may change them, and later runs are to begin as it did.
    """
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        folder = ""  # it was removed
    environment = dict(os.environ)

    def back() -> None:
        if folder:
            os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)

    return back


def tried(
    script: str, args: Sequence[str], settings: Settings, options: Options, results: Sequence[Result], console: Console
) -> Verdict:
    """Return what becomes of a script with all lines that are suggested for what was found in it.

    Parameters
    ----------
    script : str
    args : sequence of str
        Of the script.
    settings : Settings
        The schedules under which it is run with the lines.
    options : Options
        Those of the run in which `results` were found, and the limit for each run.
    results : sequence of Result
    console : Console
        For the display of progress.
    """
    wrong = unordered(results)
    if not wrong:
        return Verdict("there are none: nothing unordered was found")
    if not all(one["changes"] for one in wrong):
        return NOT_PROVEN
    try:
        return _tried(script, args, settings, options, wrong, console)
    except CannotRunError as exc:
        return Verdict(f"not tried: {exc}")


def _tried(
    script: str, args: Sequence[str], settings: Settings, options: Options, wrong: Sequence[Result], console: Console
) -> Verdict:
    plain = Children(script, args, options)
    ended = plain("fifo")
    if not unordered(plain.results):
        more = f" ({ended.failure})" if ended.failure is not None else ""
        return Verdict(
            "not tried: in a process of its own, without input, nothing is found in it without the lines"
            f"{more}; under a schedule its operations run one at a time"
        )
    with tempfile.TemporaryDirectory(prefix="halstream-") as folder, searching(console, settings) as announce:
        file = Path(folder, "sources")
        file.write_text(json.dumps(sources_of(wrong)), encoding="utf-8")
        children = Children(script, args, options._replace(sources=str(file)), announce)
        found, _ = search(children, settings)
        why = "" if found is None else str(found.execution.failure)
        return verdict(files_of(wrong), sorted(children.loaded), why, settings.schedules)
