"""The folder with compiled libraries: private to the user, and checked before anything is loaded from it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from ..._kernel import _nvrtc
from ._errors import PluginError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["find", "folder", "locked", "store"]

_HINT = "a library from there could be anybody's: set HALSTREAM_CACHE_DIR to a folder that only you can write"


def folder() -> Path:
    """Return the folder, made if it is not there.

    Raises
    ------
    PluginError
        If others could put a file there.
    """
    path = _nvrtc.cache_folder() / "paddle"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    except OSError as exc:
        raise PluginError(
            f"the library for Paddle cannot be kept: {exc}; set HALSTREAM_CACHE_DIR to a folder of your own"
        ) from None
    _check_private(path)
    return path


def _check_private(path: Path) -> None:
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        raise PluginError(f"{path} is a link; {_HINT}")
    if hasattr(os, "getuid") and facts.st_uid != os.getuid():
        raise PluginError(f"{path} belongs to another user; {_HINT}")
    if facts.st_mode & 0o077:
        raise PluginError(f"{path} is open to other users (mode {facts.st_mode & 0o777:o}); `chmod go= '{path}'`")


def find(key: str, name: str) -> Path | None:
    """Return a library that was stored as `key`, None if there is none that is whole.

    Raises
    ------
    PluginError
        If there is one, but others could have written it.
    """
    path = folder() / key / name
    if not path.is_file():
        return None
    for part in (path.parent, path):
        _check_private(part)
    about = path.parent.with_suffix(".json")  # beside the folder, of which Paddle reads every file
    try:
        digest = json.loads(about.read_text())["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return path if digest == _digest(path) else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def locked(key: str) -> Iterator[None]:
    """Hold the lock of a build among all processes of the user."""
    descriptor = os.open(folder() / f"{key}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def store(key: str, make: Callable[[Path], Path]) -> Path:
    """Let `make` compile in an empty folder, and keep its result alone; on an error nothing is kept.

    The caller holds the lock of the build.

    Returns
    -------
    Path
        Of the library.
    """
    top = folder()
    work, target = top / f"{key}.new", top / key
    shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
    work.mkdir(mode=0o700)
    try:
        made = make(work)
        for path in work.iterdir():
            if path != made:
                path.unlink()
        made.chmod(0o700)
        digest = _digest(made)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
        new = target.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps({"sha256": digest}))
        new.replace(target.with_suffix(".json"))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target / made.name
