"""The folder with compiled modules: private to the user, and checked before anything is loaded from it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..._kernel import _nvrtc
from .errors import RedirectError
from .sources import MODULE, Build

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["check_private", "find", "folder", "locked", "store"]

_ABOUT = "about.json"


def folder() -> Path:
    """Return the folder, made if it is not there.

    Raises
    ------
    RedirectError
        If others could put a file there.
    """
    path = _nvrtc.cache_folder() / "torch"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    except OSError as exc:
        raise RedirectError(
            f"the module for torch cannot be kept: {exc}; set HALSTREAM_CACHE_DIR to a folder of your own"
        ) from None
    check_private(path)
    above = path.parent.stat()
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        raise RedirectError(f"{path.parent} can be written by every user; {_HINT}")
    return path


_HINT = "a module from there could be anybody's: set HALSTREAM_CACHE_DIR to a folder that only you can write"


def check_private(path: Path) -> None:
    """Raise unless a folder or file belongs to this user, is no link, and only this user can write it.

    Raises
    ------
    RedirectError
        With what is wrong and the command that repairs it.
    """
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        raise RedirectError(f"{path} is a link; {_HINT}")
    if hasattr(os, "getuid") and facts.st_uid != os.getuid():
        raise RedirectError(f"{path} belongs to another user; {_HINT}")
    if facts.st_mode & 0o077:
        raise RedirectError(f"{path} is open to other users (mode {facts.st_mode & 0o777:o}); `chmod go= '{path}'`")


def find(build: Build, compiler: str | None) -> Path | None:
    """Return a compiled module that fits, None if there is none; without a compiler one of any compiler's.

    Raises
    ------
    RedirectError
        If there is one, but others could have written it.
    """
    top = folder()
    names = [f"{build.key}-{compiler}"] if compiler else sorted(p.name for p in top.glob(f"{build.key}-*"))
    for name in names:
        path = top / name / f"{MODULE}.so"
        if not path.is_file():
            continue
        for part in (path.parent, path):
            check_private(part)
        about = _about(path.parent)
        if about.get("build") == list(build) and about.get("sha256") == _digest(path):
            return path
    return None


def _about(path: Path) -> dict[str, Any]:
    try:
        found = json.loads((path / _ABOUT).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def locked(name: str, waiting: Callable[[], object]) -> Iterator[None]:
    """Hold the lock of a build among all processes of the user; `waiting` is called if another one has it."""
    descriptor = os.open(folder() / f"{name}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def store(build: Build, compiler: str, make: Callable[[Path], Path]) -> Path:
    """Let `make` compile in an empty folder, and keep its result; on an error nothing is kept.

    The caller holds the lock of the build.

    Returns
    -------
    Path
        Of the module.
    """
    top = folder()
    name = f"{build.key}-{compiler}"
    work, target = top / f"{name}.new", top / name
    shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
    work.mkdir(mode=0o700)
    try:
        made = make(work)
        for path in work.iterdir():
            if path != made:
                path.unlink()
        made.chmod(0o700)
        (work / _ABOUT).write_text(json.dumps({"build": build, "sha256": _digest(made)}))
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target / made.name
