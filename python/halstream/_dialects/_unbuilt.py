"""Names of the mirrored packages that are not built yet: each use says so, by its name.

A class or a function is there and raises when it is called, so that a program
can import what it may never use. A value, and whatever is asked of a module or
a class that is not built, raises an error that is an AttributeError, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

__all__ = ["Errors", "Names", "is_unbuilt"]

_KINDS = ("classes", "functions", "modules", "values")


class Errors(NamedTuple):
    """How a dialect says that something is not built: each makes an exception from a text."""

    call: Callable[[str], BaseException]
    #: An AttributeError, so that `hasattr` and `getattr` with a default work.
    attribute: Callable[[str], BaseException]


class _UnbuiltType(type):
    """The metaclass of classes that are not built."""

    _unbuilt: tuple[str, Errors]

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        path, errors = cls._unbuilt
        raise errors.attribute(f"{path}.{name} is not built yet")

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        path, errors = cls._unbuilt
        raise errors.call(f"{path} is not built yet")


class _UnbuiltModule(ModuleType):
    """A module that is not built."""

    def __init__(self, module: str, path: str, errors: Errors) -> None:
        super().__init__(module, f"{path}: not built yet.")
        self._unbuilt = path, errors

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path, errors = self._unbuilt
        raise errors.attribute(f"{path}.{name} is not built yet")


class Names:
    """The names of one mirrored package.

    Parameters
    ----------
    known : mapping
        From each module of the package to its names: one text for each of
        'classes', 'functions', 'modules' and 'values'.
    errors : Errors
    root : str
        The package that holds the mirrored one.
    """

    def __init__(self, known: Mapping[str, Mapping[str, str]], errors: Errors, root: str = "halstream") -> None:
        self._errors = errors
        self._root = root
        self._kinds = {
            module: {name: kind for kind in _KINDS for name in kinds.get(kind, "").split()}
            for module, kinds in known.items()
        }

    def all(self) -> dict[str, list[str]]:
        """Return the names of each module, sorted."""
        return {module: sorted(names) for module, names in self._kinds.items()}

    def find(self, module: str, name: str) -> Any:
        """Return what stands for a name that a module of this runtime does not have.

        Raises
        ------
        AttributeError
            The package has no such name, or it is a value: then the error says
            that it is not built yet.
        """
        mirrored = module.removeprefix(f"{self._root}.")
        kind = self._kinds.get(mirrored, {}).get(name)
        path = f"{mirrored}.{name}"
        if kind is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if kind == "values":
            raise self._errors.attribute(f"{path} is not built yet")
        made = _MAKERS[kind](module, name, path, self._errors)
        setattr(sys.modules[module], name, made)
        return made

    def getter(self, module: str) -> Callable[[str], Any]:
        """Return the `__getattr__` of a module."""
        return lambda name: self.find(module, name)

    def attribute(self, path: str, name: str) -> BaseException:
        """Return the error for an attribute that a class of this runtime does not have."""
        if name in self._kinds.get(path, {}):
            return self._errors.attribute(f"{path}.{name} is not built yet")
        cls = path.rsplit(".", 1)[-1]
        return AttributeError(f"{cls!r} object has no attribute {name!r}")


def _class(module: str, name: str, path: str, errors: Errors) -> Any:
    space = {"__module__": module, "__doc__": f"{path}: not built yet.", "_unbuilt": (path, errors)}
    return _UnbuiltType(name, (), space)


def _function(module: str, name: str, path: str, errors: Errors) -> Any:
    def unbuilt(*args: Any, **kwargs: Any) -> NoReturn:
        raise errors.call(f"{path} is not built yet")

    unbuilt.__module__, unbuilt.__name__, unbuilt.__qualname__ = module, name, name
    unbuilt.__doc__ = f"{path}: not built yet."
    unbuilt._unbuilt = path, errors  # type: ignore[attr-defined]
    return unbuilt


def _module(module: str, name: str, path: str, errors: Errors) -> Any:
    return _UnbuiltModule(f"{module}.{name}", path, errors)


_MAKERS = {"classes": _class, "functions": _function, "modules": _module}


def is_unbuilt(found: object) -> bool:
    """Return whether an object only stands for a name that is not built."""
    return "_unbuilt" in getattr(found, "__dict__", ())
