"""Compiled files that are kept between builds, for those who change the sources of the module."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from .cache import check_private

__all__ = ["Objects", "kept"]

_INCLUDE = re.compile(r'(?m)^#include [<"]([^">]+)[">]')


class Objects:
    """A folder of object files, each under the digest of all text of ours that it was compiled from.

    Parameters
    ----------
    folder : Path
        Made, for this user only, if it is not there.
    local : sequence of Path
        Folders whose headers count as text; those of torch and Python count by `versions`.
    versions : sequence of str
        What else decides about the result: the compiler, its options, the version of torch.
    """

    def __init__(self, folder: Path, local: Sequence[Path], versions: Sequence[str]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(folder)
        self._folder, self._local, self._versions = folder, local, versions

    def headers(self, names: Sequence[str]) -> Path:
        """Return the folder for the precompiled form of some headers of torch."""
        path = self._folder / f"headers-{self._digest(names)}"
        path.mkdir(exist_ok=True)
        return path

    def take(self, unit: Path, target: Path) -> bool:
        """Copy the object of a source to a file; return whether there is one."""
        found = self._folder / f"{self._of(unit)}.o"
        if not found.exists():
            return False
        shutil.copyfile(found, target)
        return True

    def put(self, unit: Path, made: Path) -> None:
        """Keep the object of a source."""
        kept = self._folder / f"{self._of(unit)}.o"
        new = kept.with_suffix(f".{os.getpid()}")
        shutil.copyfile(made, new)
        new.replace(kept)

    def _of(self, unit: Path) -> str:
        texts: dict[str, str] = {}
        waiting = [unit]
        while waiting:
            path = waiting.pop()
            if path.name in texts:
                continue
            texts[path.name] = path.read_text()
            named = _INCLUDE.findall(texts[path.name])
            waiting += [folder / name for name in named for folder in self._local if (folder / name).is_file()]
        return self._digest(sorted(texts.items()))

    def _digest(self, what: object) -> str:
        return hashlib.sha256(json.dumps([self._versions, what]).encode()).hexdigest()[:24]


def kept(local: Sequence[Path], versions: Sequence[str]) -> Objects | None:
    """Return the objects of the folder that ``HALSTREAM_TORCH_OBJECTS`` names, None if it names none."""
    named = os.environ.get("HALSTREAM_TORCH_OBJECTS")
    return Objects(Path(named), local, versions) if named else None
