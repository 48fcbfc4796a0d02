"""The cache folder, and folders in it with compiled libraries.

These are private to the user, and checked before anything is loaded from them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Compiled", "cache_folder", "digest"]


def cache_folder() -> Path:
    """Return HALSTREAM_CACHE_DIR, or halstream's part of the user's cache folder."""
    chosen = os.environ.get("HALSTREAM_CACHE_DIR")
    if chosen:
        return Path(chosen)
    user = os.environ.get("XDG_CACHE_HOME", "")
    # The rules of XDG: a relative path does not count.
    return (Path(user) if os.path.isabs(user) else Path.home() / ".cache") / "halstream"


def digest(path: Path) -> str:
    """Return what tells a file's content from others'."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Compiled:
    """A folder for one kind of libraries, in the user's cache folder.

    Parameters
    ----------
    name : str
        Of the folder.
    kind : str
        What is kept, for messages: ``"module for torch"``.
    error : type of Exception
        What is raised where others could put a file there.
    """

    def __init__(self, name: str, kind: str, error: type[Exception]) -> None:
        self._name, self._kind, self._error = name, kind, error
        owner = "set HALSTREAM_CACHE_DIR to a folder that only you can write"
        self._hint = f"a {kind.split()[0]} from there could be anybody's: {owner}"

    def folder(self) -> Path:
        """Return the folder, made if it is not there."""
        path = cache_folder() / self._name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
        except OSError as exc:
            raise self._error(
                f"the {self._kind} cannot be kept: {exc}; set HALSTREAM_CACHE_DIR to a folder of your own"
            ) from None
        self.check_private(path)
        above = path.parent.stat()
        if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
            raise self._error(f"{path.parent} can be written by every user; {self._hint}")
        return path

    def check_private(self, path: Path) -> None:
        """Raise unless a folder or file belongs to this user, is no link, and only this user can write it."""
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            raise self._error(f"{path} is a link; {self._hint}")
        if hasattr(os, "getuid") and facts.st_uid != os.getuid():
            raise self._error(f"{path} belongs to another user; {self._hint}")
        if facts.st_mode & 0o077:
            raise self._error(f"{path} is open to other users (mode {facts.st_mode & 0o777:o}); `chmod go= '{path}'`")

    @contextlib.contextmanager
    def locked(self, name: str, waiting: Callable[[], object] | None = None) -> Iterator[None]:
        """Hold the lock of a build among all processes of the user; `waiting` is called if another one has it."""
        descriptor = os.open(self.folder() / f"{name}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if waiting is not None:
                        waiting()
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def store(
        self,
        name: str,
        make: Callable[[Path], Path],
        inside: Callable[[Path, str], object] | None = None,
        beside: Callable[[Path, str], object] | None = None,
    ) -> Path:
        """Let `make` compile in an empty folder, and keep its result alone; on an error nothing is kept.

        Parameters
        ----------
        name : str
            Of the folder that is kept. The caller holds its lock.
        make : callable
            Is given an empty folder, and returns the library that it has made there.
        inside, beside : callable, optional
            Write what is to be known of the library, given its digest: into the folder before it is kept, or, given
            the folder that is kept, beside it.

        Returns
        -------
        Path
            Of the library.
        """
        top = self.folder()
        work, target = top / f"{name}.new", top / name
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        work.mkdir(mode=0o700)
        try:
            made = make(work)
            for path in work.iterdir():
                if path != made:
                    path.unlink()
            made.chmod(0o700)
            content = digest(made)
            if inside is not None:
                inside(work, content)
            shutil.rmtree(target, ignore_errors=True)
            work.rename(target)
            if beside is not None:
                beside(target, content)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return target / made.name
