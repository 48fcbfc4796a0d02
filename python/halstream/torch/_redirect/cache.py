"""The folder with compiled modules. What is known of a module lies in its own folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..._compiled import Compiled, digest
from .errors import RedirectError
from .sources import MODULE, Build

__all__ = ["check_private", "find", "folder", "locked", "store"]

_ABOUT = "about.json"

_compiled = Compiled("torch", "module for torch", RedirectError)
folder, check_private, locked = _compiled.folder, _compiled.check_private, _compiled.locked


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
        if about.get("build") == list(build) and about.get("sha256") == digest(path):
            return path
    return None


def _about(path: Path) -> dict[str, Any]:
    try:
        found = json.loads((path / _ABOUT).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def store(build: Build, compiler: str, make: Callable[[Path], Path]) -> Path:
    """Let `make` compile in an empty folder, and keep its result; on an error nothing is kept.

    The caller holds the lock of the build.

    Returns
    -------
    Path
        Of the module.
    """

    def note(work: Path, content: str) -> None:
        (work / _ABOUT).write_text(json.dumps({"build": build, "sha256": content}))

    return _compiled.store(f"{build.key}-{compiler}", make, inside=note)
