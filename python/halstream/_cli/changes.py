"""What git knows of a project: its Python files, and those that changed since a branch was begun."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

__all__ = ["Changes", "NoChangesError", "changes"]

#: Branches that others begin at, the most certain first.
_TRUNKS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
#: Seconds that git may take.
_LIMIT = 60


class NoChangesError(Exception):
    """What changed is not known; the text says why and what to do."""


class Changes(NamedTuple):
    """What changed in a project."""

    top: Path  #: its folder
    base: str  #: the commit that it is compared with; '' where there is none yet
    changed: list[Path]  #: Python files, also those that are not there any more
    files: list[Path]  #: all Python files


def changes(base: str = "", folder: str = ".") -> Changes:
    """Return what changed, in commits and outside of any, since the working folder's branch was begun.

    Parameters
    ----------
    base : str
        A commit or branch to begin at; without one that is the trunk, or HEAD on the trunk itself.
    folder : str
        Any folder of the project.

    Raises
    ------
    NoChangesError
        Without git, outside of a repository, or for a base that there is not.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    start = _start(top, base)
    everything = _listed(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if start:
        changed = _listed(top, "diff", "--name-only", "-z", start, "--")
        changed += _listed(top, "ls-files", "-z", "--others", "--exclude-standard")
    else:
        changed = everything
    files = [file for file in dict.fromkeys(everything) if file.exists()]
    return Changes(top, start, list(dict.fromkeys(changed)), files)


def _start(top: Path, base: str) -> str:
    """Return the commit to compare with, '' in a repository without one."""
    head = _commit(top, "HEAD")
    if base:
        if not _commit(top, base):
            raise NoChangesError(f"git knows no commit {base!r}; give --base a branch, a tag or a commit")
        return _git(top, "merge-base", "HEAD", base).strip() if head else ""
    for trunk in _TRUNKS if head else ():
        if _commit(top, trunk):
            return _quietly(top, "merge-base", "HEAD", trunk) or head
    return head


def _commit(top: Path, name: str) -> str:
    return _quietly(top, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")


def _listed(top: Path, *words: str) -> list[Path]:
    """Return the Python files of a list of git's."""
    return [top / name for name in _git(top, *words).split("\0") if name.endswith(".py")]


def _quietly(top: Path, *words: str) -> str:
    """Return what git says, '' where it fails."""
    done = _run(top, words)
    return done.stdout.strip() if done.returncode == 0 else ""


def _git(folder: str | os.PathLike[str], *words: str) -> str:
    done = _run(folder, words)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise NoChangesError(
            f"what changed is not known, as git says: {said[-1] if said else f'exit code {done.returncode}'}; "
            "name the tests: halstream verify tests"
        )
    return done.stdout


def _run(folder: str | os.PathLike[str], words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = ["git", "-c", "core.quotepath=off", *words]
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="surrogateescape", timeout=_LIMIT, check=False
        )
    except FileNotFoundError:
        raise NoChangesError(
            "what changed is not known without git, which is not installed; install it, or name the tests: "
            "halstream verify tests"
        ) from None
    except subprocess.TimeoutExpired:
        raise NoChangesError(f"git {words[0]} did not end within {_LIMIT} s; name the tests") from None
