"""What happens around the program's ``import paddle``."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ..._stalls.bystanders import library_threads

__all__ = ["when_imported"]


def when_imported(variables: dict[str, str], done: Callable[[ModuleType], object]) -> None:
    """Set variables of the environment while Paddle is imported, and call a function with it afterwards.

    The variables are for this process alone: a child process of the program imports Paddle as it likes.
    """
    sys.meta_path.insert(0, _Finder(variables, done))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, variables: dict[str, str], done: Callable[[ModuleType], object]) -> None:
        self._variables = variables
        self._done = done

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "paddle":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executing(module: ModuleType) -> None:
                # Paddle 3.0 starts one that takes samples of its counters for ever.
                with _variables(self._variables), library_threads():
                    execute(module)
                self._done(module)

            spec.loader.exec_module = executing  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
