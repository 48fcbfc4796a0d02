"""Processes that a program under `halstream run --torch` starts: their torch is redirected when they import it."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["in_children", "watch_for_torch"]

_FOLDER = Path(__file__).parent / "startup"


def in_children(*, sanitize: bool) -> None:
    """Let processes that this one starts redirect torch, and say which accesses are unordered if `sanitize`."""
    os.environ["HALSTREAM_TORCH"] = "redirect"
    if sanitize:
        os.environ.setdefault("HALSTREAM_SANITIZE", "raise")
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    package = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(_FOLDER), *filter(None, path), package]))


def watch_for_torch() -> None:
    """Redirect torch once this process imports it."""
    sys.meta_path.insert(0, _Finder())


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


def _redirect() -> None:
    from ..torch import redirect

    redirect()
