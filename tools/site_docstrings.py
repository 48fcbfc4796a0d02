"""An extension of griffe: the members of classes as a reader wants them.

Methods that are written in C get their docstrings, which their stub does not repeat.
"""

from __future__ import annotations

import inspect
from functools import reduce
from importlib import import_module
from typing import Any

import griffe

__all__ = ["CompiledDocstrings"]


class CompiledDocstrings(griffe.Extension):  # type: ignore[misc, unused-ignore]
    """Takes the docstring of a function or property in a stub from the compiled object."""

    def on_class_members(self, *, cls: Any, **_: Any) -> None:
        """Leave out what a class says of itself; griffe calls it for each class with its members."""
        for name in ("__doc__", "__module__"):
            cls.members.pop(name, None)

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Look at one object; griffe calls it for each that it has read."""
        if obj.docstring is not None or obj.name.startswith("__") or not str(obj.filepath).endswith(".pyi"):
            return
        if not obj.is_function and "property" not in obj.labels:
            return
        module = obj.module.path
        try:
            names = obj.path.removeprefix(module + ".").split(".")
            text = inspect.getdoc(reduce(getattr, names, import_module(module)))
        except (ImportError, AttributeError):
            return  # what only a type checker sees
        if text:
            obj.docstring = griffe.Docstring(text, parent=obj)
