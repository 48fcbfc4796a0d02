"""The command `halstream trace`: runs a script and writes a trace of it."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Sequence
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .. import _native
from .._records import ExecutionRecord, OperationRecord
from .._traces import perfetto as _perfetto
from .._traces.annotated import annotate
from .._traces.annotations import Annotation
from .._traces.recording import Recording
from .._traces.timeline import lay_out
from . import programs as _programs
from . import script as _script

__all__ = ["CannotTraceError", "trace"]

_VIEWER = "https://ui.perfetto.dev"


class CannotTraceError(Exception):
    """The command cannot be carried out, and nothing was run."""


def trace(script: str, args: Sequence[str], output: str | None, say: Callable[[str], None], console: Console) -> int:
    """Run a script with its operations recorded, and write the trace.

    Parameters
    ----------
    script : str
    args : sequence of str
        Of the script.
    output : str or None
        None is the script's name with ``.pftrace``, in the working folder.
    say : callable
        Prints a line about the command itself.
    console : Console
        For the display of progress.

    Returns
    -------
    int
        The script's exit code; where that is 0, 2 if the trace could not be written.

    Raises
    ------
    CannotTraceError
        If the script does not exist or the trace cannot go where it should; the
        script has not begun then.
    """
    program = _programs.is_program(script)
    try:
        if not program:
            _script.check(script)
        _perfetto.schema()
    except (FileNotFoundError, ImportError) as exc:
        raise CannotTraceError(str(exc)) from None
    path = output or os.path.splitext(os.path.basename(os.path.abspath(script)))[0] + ".pftrace"
    text_of_site: Callable[[int], str]
    annotations: list[Annotation] = []
    with _open(path) as file:
        if program:
            done, record = _programs.recorded(script, args, {})
            code: int = 128 - done.returncode if done.returncode < 0 else done.returncode
            operations, executed = record.get("operations", []), record.get("executed", [])
            stacks = {int(site): json.dumps(frames) for site, frames in record.get("sites", {}).items()}
            text_of_site = stacks.__getitem__
        else:
            recording = Recording()
            code = _script.run(script, args).code
            operations, executed = recording.finish()
            annotations = recording.annotations
            text_of_site = _native.position_text  # not before the script has chosen its backend
        try:
            _write(file, operations, executed, annotations, console, text_of_site)
        except OSError as exc:
            say(f"the script has run, but its trace cannot be written to {path}: {exc.strerror or exc}")
            return code or 2
    if executed is None:
        say("this backend does not report when operations run: the trace shows when they were enqueued")
    say(f"{sum(not one['host'] for one in operations)} operations; the trace is in {path}, for {_VIEWER}")
    return code


def _open(path: str) -> IO[bytes]:
    """Open the file of a trace before anything is run; what is in it stays until the end."""
    try:
        return open(path, "ab", buffering=0)
    except OSError as exc:
        raise CannotTraceError(f"the trace cannot be written to {path}: {exc.strerror}") from None


def _write(
    file: IO[bytes],
    operations: list[OperationRecord],
    executed: list[ExecutionRecord] | None,
    annotations: list[Annotation],
    console: Console,
    text_of_site: Callable[[int], str],
) -> None:
    if file.seekable() and os.path.isfile(file.name):
        file.truncate(0)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of objects, and no cycles among them
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("writing the trace", total=None)
            timeline = lay_out(operations, executed, lambda: progress.advance(task, 0))
            annotate(timeline, annotations)
            progress.update(task, total=1.0)
            for data, part in _perfetto.chunks(timeline, text_of_site):
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                progress.update(task, completed=part)
    finally:
        if collecting:
            gc.enable()
