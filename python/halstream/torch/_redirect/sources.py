"""The C++ sources of the module, and what a build of them is good for."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import halstream

from .errors import RedirectError

__all__ = ["MODULE", "Build", "Compiler", "current", "files", "find_compiler", "sources"]

#: Name of the extension module.
MODULE = "halstream_torch_device"

#: Changes when the commands change by which the module is built.
_FORMAT = 1

_PACKAGE = Path(__file__).resolve().parents[2]


class Compiler(NamedTuple):
    """A C++ compiler."""

    command: tuple[str, ...]
    identity: str  #: another one after an update


class Build(NamedTuple):
    """What a compiled module fits: only a build with the same values is loaded."""

    halstream: str
    torch: str
    python: str
    sources: str  #: digest of all files and flags

    @property
    def key(self) -> str:
        """Return a file name for it."""
        digest = hashlib.sha256(json.dumps(self).encode()).hexdigest()[:16]
        return f"{self.torch.partition('+')[0]}-{self.python}-{digest}"


def sources() -> Path:
    """Return the folder of the C++ sources: part of an installed package, or of a tree for development.

    Raises
    ------
    RedirectError
        If there is none.
    """
    for folder in (_PACKAGE / "torch" / "_source", _PACKAGE.parents[1] / "torch"):
        if any(folder.glob("*.cpp")):
            return folder
    raise RedirectError(
        "this installation of halstream lacks the C++ sources of its module for torch (halstream/torch/_source); "
        "install it again: `pip install --force-reinstall --no-deps halstream`"
    )


def files(folder: Path) -> list[Path]:
    """Return all files of the sources, sorted."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".cpp", ".h", ".inc") and path.is_file())


def current(torch: Any, include: Path, flags: Sequence[str] = ()) -> Build:
    """Return what a build would fit that is made now."""
    folder = sources()
    digest = hashlib.sha256(json.dumps([_FORMAT, *flags]).encode())
    for path in [*files(folder), include / "halstream.h"]:
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return Build(
        halstream.__version__,
        f"{torch.__version__}/{torch.version.git_version}".replace("/None", ""),
        str(sysconfig.get_config_var("SOABI") or sysconfig.get_platform()),
        digest.hexdigest(),
    )


def find_compiler() -> Compiler | None:
    """Return the C++ compiler that CXX names, or the first of g++, clang++ and c++; None without one."""
    named = os.environ.get("CXX", "").split()
    for command in [named] if named else [["g++"], ["clang++"], ["c++"]]:
        path = shutil.which(command[0])
        if path is not None:
            real = os.path.realpath(path)
            facts = os.stat(real)
            text = json.dumps([real, command[1:], facts.st_size, facts.st_mtime_ns])
            return Compiler((path, *command[1:]), hashlib.sha256(text.encode()).hexdigest()[:8])
    return None
