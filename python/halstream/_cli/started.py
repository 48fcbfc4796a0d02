"""Processes that a program under `halstream run --torch` or `--paddle` starts: they have the host device as it has."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["in_children", "note_use", "used", "watch_for_paddle", "watch_for_torch"]

#: The file that a process makes which uses torch's device, if the one that started it wants to know.
_USED = "HALSTREAM_TORCH_USED"
_FOLDER = Path(__file__).parent / "startup"


def in_children(variable: str, value: str, *, sanitize: bool) -> None:
    """Let processes that this one starts do likewise, and say which accesses are unordered if `sanitize`."""
    os.environ[variable] = value
    if sanitize:
        os.environ.setdefault("HALSTREAM_SANITIZE", "raise")
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    package = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(_FOLDER), *filter(None, path), package]))


def note_use(file: str) -> None:
    """Let processes that this one starts make a file as soon as they use torch's device."""
    os.environ[_USED] = file


def used() -> bool:
    """True if one has, since `note_use`."""
    return os.path.exists(os.environ.get(_USED, ""))


def watch_for_torch() -> None:
    """Redirect torch once this process imports it."""
    sys.meta_path.insert(0, _Finder())


def watch_for_paddle() -> None:
    """Let Paddle have the host device once this process imports it."""
    sys.meta_path.insert(0, _PaddleFinder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executing(module: ModuleType) -> None:
                execute(module)
                _redirect()

            spec.loader.exec_module = executing  # type: ignore[method-assign]
        return spec


class _PaddleFinder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "paddle":
            return None
        sys.meta_path.remove(self)
        _plug_in()
        return importlib.util.find_spec(name)


def _plug_in() -> None:
    from ..paddle import plugin

    plugin.install()


def _redirect() -> None:
    from ..torch import redirect

    redirect()
    file = os.environ.get(_USED)
    if file:
        sys.modules["torch"].cuda._lazy_call(lambda: Path(file).touch())
