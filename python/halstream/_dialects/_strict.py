"""Strict mode: a dialect's classes and modules show only the names of the package that it mirrors.

The classes inherit from the core's, whose names programs could use by mistake
without noticing that the program is no longer portable, and the modules have the
names that they import. In strict mode such a name raises AttributeError, and a
parameter that only this package has TypeError, except in the package's own code.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from .._core._strict import strict
from ._not_built import public_names

__all__ = ["turn"]

_PACKAGE = __name__.partition(".")[0]
# Special methods that classes inherit from the core; no mirrored class can be awaited.
_ASYNC = frozenset(("__await__", "__aenter__", "__aexit__"))


def _called_by_package() -> bool:
    """Return whether code of this package reads the attribute, directly or through the import machinery."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE


class _Hidden:
    """Hides, on a dialect's class, a name that the mirrored class does not have."""

    def __init__(self, cls: type, name: str) -> None:
        self.cls = cls
        self.name = name
        self.found = name in vars(cls)  # the class has it itself, not by inheritance
        self.original = vars(cls).get(name)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        owner = type(instance) if owner is None else owner
        if not _called_by_package() and self.name not in _names(owner):
            raise AttributeError(
                f"{owner.__name__!r} has no attribute {self.name!r} in strict mode: the package that "
                f"{self.cls.__module__} mirrors does not have it. It belongs to {_PACKAGE}'s core; "
                f"call it as {_PACKAGE}.{_core_class(self.cls)}.{self.name}(...), or leave strict mode"
            )
        if self.found:
            value = self.original
        else:
            rest = owner.__mro__[owner.__mro__.index(self.cls) + 1 :]
            value = next(vars(cls)[self.name] for cls in rest if self.name in vars(cls))
        bind = getattr(type(value), "__get__", None)
        return value if bind is None else bind(value, instance, owner)


#: Parameters that methods and functions of the dialects have beside those of the packages.
_ADDED = frozenset(("reads", "writes", "timeout"))


class _Plain:
    """Stands, on a dialect's class, for a method without the parameters that the mirrored one does not have."""

    def __init__(self, cls: type, name: str, original: FunctionType) -> None:
        self.found = name in vars(cls)  # the class has it itself, not by inheritance
        self.original = original

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        function = self.original if _called_by_package() else _plain(self.original)
        return function.__get__(instance, owner)


def _adds(function: Any) -> bool:
    """Return whether a function is one of this package's with a parameter of `_ADDED` that can be left out."""
    if not isinstance(function, FunctionType) or function.__module__.partition(".")[0] != _PACKAGE:
        return False
    parameters = inspect.signature(function).parameters
    return any(name in _ADDED and one.default is not one.empty for name, one in parameters.items())


@functools.cache
def _plain(function: Any) -> Any:
    """Return a function that does what another one does, without the parameters of `_ADDED`."""
    whole = inspect.signature(function)
    parameters = [one for name, one in whole.parameters.items() if name not in _ADDED or one.default is one.empty]
    plain = whole.replace(parameters=parameters)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        added = sorted(_ADDED.intersection(kwargs).difference(plain.parameters))
        if added:
            raise TypeError(
                f"{function.__name__}() has no parameter {added[0]!r} in strict mode: the package that is mirrored "
                f"does not have it. It belongs to {_PACKAGE}; leave it out, or leave strict mode"
            )
        plain.bind(*args, **kwargs)
        return function(*args, **kwargs)

    call.__signature__ = plain  # type: ignore[attr-defined]
    return call


def _core_class(cls: type) -> str:
    return next(base.__name__ for base in cls.__mro__ if base.__module__.startswith(f"{_PACKAGE}._core"))


def _listed(cls: type) -> Mapping[str, str] | None:
    return public_names(f"{cls.__module__}.{cls.__qualname__}".removeprefix(f"{_PACKAGE}."))


def _names(cls: type) -> frozenset[str]:
    """Return the public names of the first mirrored class in a class's method resolution order."""
    for base in cls.__mro__:
        names = _listed(base)
        if names is not None:
            return frozenset(names)
    return frozenset()


def _inherited(cls: type) -> set[str]:
    """Return the names that a class has from this package, without private ones and special methods that all have."""
    own = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == _PACKAGE]
    return {name for base in own for name in vars(base) if not name.startswith("_") or name in _ASYNC}


def _dir(self: Any) -> list[str]:
    names = _names(type(self))
    hidden = {name for cls in type(self).__mro__ for name, value in vars(cls).items() if isinstance(value, _Hidden)}
    return [name for name in object.__dir__(self) if name not in hidden or name in names]


def _hide(cls: type) -> None:
    """Hide what a dialect's class has beyond the mirrored one; other classes stay as they are."""
    if _listed(cls) is None:
        return
    for name in _inherited(cls) - _names(cls):
        if not isinstance(vars(cls).get(name), _Hidden):
            setattr(cls, name, _Hidden(cls, name))
    for name in _inherited(cls) & _names(cls):
        original = inspect.getattr_static(cls, name)
        if _adds(original):
            setattr(cls, name, _Plain(cls, name, original))
    cls.__dir__ = _dir  # type: ignore[assignment, method-assign]


def _show(cls: type) -> None:
    for name, value in list(vars(cls).items()):
        if isinstance(value, (_Hidden, _Plain)):
            if value.found:
                setattr(cls, name, value.original)
            else:
                delattr(cls, name)
    if vars(cls).get("__dir__") is _dir:
        del cls.__dir__


class _StrictModule(ModuleType):
    """The base of the classes of a dialect's public modules in strict mode."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__all__" and not _called_by_package():
            # Also of a module without it, which a star import would ask for each name that it has.
            names = vars(self).get(name) or [public for public in vars(self) if not public.startswith("_")]
            return _mirrored(self.__name__, names)
        found = super().__getattribute__(name)
        if name.startswith("_") or _called_by_package():
            return found
        module = self.__name__
        if name not in _mirrored(module, (name,)):
            mirrored = module.removeprefix(f"{_PACKAGE}.")
            raise AttributeError(f"module {module!r} has no attribute {name!r} in strict mode: {mirrored} has none")
        return _plain(found) if _adds(found) else found

    def __dir__(self) -> list[str]:
        names = list(super().__dir__())
        return [*(name for name in names if name.startswith("_")), *_mirrored(self.__name__, names)]


def _mirrored(module: str, names: Iterable[str]) -> list[str]:
    """Return those of some names that the mirrored module has."""
    listed = public_names(module.removeprefix(f"{_PACKAGE}.")) or {}
    return [name for name in names if name in listed]


def _hide_module(name: str) -> None:
    module = sys.modules[name]
    if not isinstance(module, _StrictModule):
        module.__class__ = type(_StrictModule.__name__, (_StrictModule, type(module)), {})


def _show_module(name: str) -> None:
    module = sys.modules.get(name)
    if isinstance(module, _StrictModule):
        module.__class__ = type(module).__bases__[1]


def turn(on: bool) -> None:
    """Turn strict mode on or off for all dialects, also for what is imported later."""
    strict.enabled = on
    strict.hide = _hide if on else None
    strict.hide_module = _hide_module if on else None
    for cls in list(strict.classes):
        (_hide if on else _show)(cls)
    for name in list(strict.modules):
        (_hide_module if on else _show_module)(name)
