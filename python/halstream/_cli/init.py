"""The command `init`."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .project import Change, ProjectError, additions, project_of, removals, uses_torch
from .terminal import fail, put, say

__all__ = ["init"]


def init(
    yes: Annotated[bool, typer.Option("--yes", help="Write without a question.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take back exactly what this command added.")] = False,
    torch: Annotated[
        bool | None,
        typer.Option(
            "--torch/--no-torch",
            help="Whether tests use the real torch; if not said, whether a file of the project imports it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Add to a project what checks its streams: settings of pytest, a workflow, suppressions, words for agents.

    The changes are shown first. Without a terminal, and without --yes, nothing is written. What is there already stays
    as it is. The exit code is 2 if there is no project, a file cannot be parsed, or lines to be undone were changed.
    """
    try:
        root = project_of(Path.cwd())
        found = removals(root) if undo else additions(root, uses_torch(root) if torch is None else torch)
        changes = list(found)
    except ProjectError as exc:
        fail(str(exc))
    if not changes:
        say("there is nothing to undo" if undo else "everything is there already; nothing is changed")
        return
    put(_diff(root, changes))
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            say(f"nothing is written; say halstream init{' --undo' * undo} --yes")
            return
        if not typer.confirm("Write this?"):
            say("nothing is written")
            return
    for change in changes:
        try:
            _write(change, root)
        except OSError as exc:
            fail(f"{change.path} cannot be written: {exc.strerror or exc}; what was written before stays")
    say(f"{len(changes)} file(s) {'set back' if undo else 'written'}")


def _write(change: Change, root: Path) -> None:
    if change.after is None:
        change.path.unlink()
        for folder in list(change.path.parents)[: len(change.path.relative_to(root).parts) - 1]:
            if any(folder.iterdir()):
                break
            folder.rmdir()
        return
    change.path.parent.mkdir(parents=True, exist_ok=True)
    change.path.write_bytes(change.after.encode("utf-8"))


def _diff(root: Path, changes: Sequence[Change]) -> str:
    lines: list[str] = []
    for path, before, after in changes:
        name = path.relative_to(root).as_posix()
        lines += difflib.unified_diff(
            (before or "").splitlines(),
            (after or "").splitlines(),
            "/dev/null" if before is None else f"a/{name}",
            "/dev/null" if after is None else f"b/{name}",
            lineterm="",
        )
    return "\n".join(lines)
