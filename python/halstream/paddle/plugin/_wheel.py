"""The installed Paddle, found without importing it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

from ._errors import PluginError

__all__ = ["SUPPORTED", "Wheel", "installed"]

#: The versions from the first up to, and without, the second.
SUPPORTED = ((3, 0), (3, 4))


class Wheel(NamedTuple):
    """An installed Paddle."""

    version: str
    folder: Path  #: of the package

    @property
    def include(self) -> Path:
        """Return the folder with Paddle's headers."""
        return self.folder / "include"


def installed() -> Wheel:
    """Return the Paddle that ``import paddle`` would load.

    Raises
    ------
    PluginError
        If Paddle is not installed, its version is not supported, or its build takes no plug-ins.
    """
    spec = importlib.util.find_spec("paddle")
    if spec is None or not spec.submodule_search_locations:
        raise PluginError(
            "Paddle is not installed: `pip install 'halstream[paddle]'`, or paddlepaddle 3.0 to 3.3 for CPUs"
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    version = _version(folder)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if not SUPPORTED[0] <= numbers < SUPPORTED[1]:
        raise PluginError(
            f"Paddle {version} is installed, and the plug-in is for 3.0 to 3.3: its interface for devices may differ; "
            "`pip install 'paddlepaddle>=3.0,<3.4'`"
        )
    if not _takes_plugins(folder):
        raise PluginError(
            f"this build of Paddle {version} takes no plug-ins for devices; the builds for CPUs do: "
            "`pip install paddlepaddle`"
        )
    return Wheel(version, folder)


def _version(folder: Path) -> str:
    """Return what the package says of itself; its distributions have several names."""
    try:
        found = re.search(r"(?m)^full_version\s*=\s*['\"]([^'\"]+)", (folder / "version" / "__init__.py").read_text())
    except OSError:
        found = None
    if found:
        return found.group(1)
    try:
        return importlib.metadata.version("paddlepaddle")
    except importlib.metadata.PackageNotFoundError:
        return "of an unknown version"


def _takes_plugins(folder: Path) -> bool:
    try:
        found = re.search(r"(?m)^cuda_version\s*=\s*['\"]([^'\"]+)", (folder / "version" / "__init__.py").read_text())
    except OSError:
        found = None
    return not found or found.group(1) == "False"
