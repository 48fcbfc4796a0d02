"""The public names of the mirrored packages, and placeholders for those not built yet.

A class or a function that is not built can be imported and raises when it is
used, so that a program can import what it may never use. A value, and an
attribute of a module, a class or an object, raises an error that is an
AttributeError, too: ``hasattr`` is False and ``getattr`` returns its default.

Each dialect lists the names in ``names.txt``: ``[module or class]``, then the names
after their kind and a colon. Lines that begin with ``#`` are comments.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, NoReturn

from .._core._strict import strict
from .._errors import NotSupportedError
from .._notes import point_to_page

__all__ = [
    "Errors", "NotBuiltError", "attribute_error", "is_not_built", "names", "not_built", "not_built_function",
    "public_names",
]  # fmt: skip

_PACKAGE = __name__.partition(".")[0]


class NotBuiltError(NotSupportedError, AttributeError):
    """An attribute of the mirrored package that is not built yet."""

    _page = "unsupported-name"


class Errors(NamedTuple):
    """How a dialect reports that something is not built: each makes an exception from a text."""

    call: Callable[[str], BaseException] = NotSupportedError
    #: An AttributeError, so that `hasattr` and `getattr` with a default work.
    attribute: Callable[[str], BaseException] = NotBuiltError


_ERRORS = Errors()

#: What to do instead: for each name of torch, and for those of other packages outside of their modules for streams.
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "torch": "halstream.torch has torch's streams, events, devices and memory; the rest, such as tensors and "
        "graphs, is the real torch's. A program of the real torch runs without a GPU by "
        "`halstream run --torch PROGRAM`, `pytest --stream-torch`, or "
        "`import halstream.torch.cuda_on_host` before it imports torch",
        "paddle": "halstream.paddle has paddle's streams, events, devices and memory, and a few operations on tensors. "
        "A program of the real Paddle runs by `halstream run --paddle PROGRAM`, or "
        "`import halstream.paddle.plugin` before it imports paddle",
        "mindspore": "halstream.mindspore has mindspore's streams, events, devices and memory, and a few operations on "
        "tensors",
        "cupy": "halstream.cupy has cupy's streams, events, devices and memory, kernels, and a few functions of arrays",
        "cupyx": "halstream.cupyx has cupyx's pinned memory and cupyx.profiler",
        "cuda": "halstream.cuda has cuda.core's devices, streams, events, memory, kernels and graphs by capture. A "
        "program of the real cuda.core runs without a GPU by `halstream run --cuda PROGRAM`",
        "acl": "halstream.acl has pyACL's runtime (acl.rt), acl.util and captures (acl.mdl): no models, operators or "
        "media",
    }
)


def _hinted(text: str, path: str) -> str:
    """Return a text with what to do instead, unless the name is one of a module for streams such as cupy.cuda."""
    package, *rest = path.split(".")
    for_streams = package != "torch" and len(rest) > 1 and public_names(f"{package}.{rest[0]}")
    return text if for_streams or package not in _HINTS else f"{text}; {_HINTS[package]}"


def _absent(path: str) -> str:
    """Return the text about a name that is not built."""
    return _hinted(f"{path} is not built yet", path)


@functools.cache
def names(dialect: str) -> Mapping[str, Mapping[str, str]]:
    """Return the kind of each public name of a mirrored package, by its module or class; empty for no dialect."""
    found: dict[str, dict[str, str]] = {}
    try:
        # importlib.resources loads zipfile and tempfile, and takes longer than the rest of the import.
        data = pkgutil.get_data(_PACKAGE, f"{dialect}/names.txt") or b""
    except OSError:  # no dialect
        return MappingProxyType(found)
    listed: dict[str, str] = {}
    kind = ""
    for line in data.decode().splitlines():
        for word in () if line.startswith("#") else line.split():
            if word.startswith("["):
                listed = found.setdefault(word[1:-1], {})
            elif word.endswith(":"):
                kind = word[:-1]
            else:
                listed[word] = kind
    return MappingProxyType(found)


def public_names(owner: str) -> Mapping[str, str] | None:
    """Return the kind of each public name of a module or class, None if its package does not list it."""
    return names(owner.partition(".")[0]).get(owner)


def not_built(module: str, errors: Errors = _ERRORS) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a dialect's public module, and register it for strict mode.

    Parameters
    ----------
    module : str
        The module's ``__name__``, ``halstream.paddle.device`` for instance.
    errors : Errors
        How the dialect reports what is not built.

    Returns
    -------
    callable
        It returns a placeholder for a class, function or module of the mirrored
        module. For a value it raises the attribute error of ``errors``, for a name
        that the mirrored module lacks a plain AttributeError.
    """
    mirrored = module.removeprefix(f"{_PACKAGE}.")
    strict.add_module(module)

    def __getattr__(name: str) -> Any:
        kind = (public_names(mirrored) or {}).get(name)
        path = f"{mirrored}.{name}"
        if kind is None:
            raise _no_attribute(_hinted(f"module {module!r} has no attribute {name!r}", path))
        if kind not in _MAKERS:
            raise errors.attribute(_absent(path))
        made = _MAKERS[kind](module, name, path, errors)
        setattr(sys.modules[module], name, made)
        return made

    return __getattr__


def attribute_error(path: str, name: str, errors: Errors = _ERRORS) -> BaseException:
    """Return the error for an attribute that an object of a dialect does not have.

    Parameters
    ----------
    path : str
        The class in the mirrored package, ``mindspore.Tensor`` for instance.
    name : str
        The attribute.
    errors : Errors
        How the dialect reports what is not built.

    Returns
    -------
    AttributeError
        That it is not built yet if the mirrored class has it.
    """
    if name in (public_names(path) or {}):
        return errors.attribute(f"{path}.{name} is not built yet; {_HINTS[path.partition('.')[0]]}")
    return _no_attribute(f"{path.rpartition('.')[2]!r} object has no attribute {name!r}")


def _no_attribute(text: str) -> AttributeError:
    """Return the error for a name that the mirrored package does not have either."""
    error = AttributeError(text)
    point_to_page(error, "unsupported-name")
    return error


def is_not_built(found: object) -> bool:
    """Return whether an object is a placeholder for a name that is not built."""
    return "_stands_for" in getattr(found, "__dict__", ())


class _Type(type):
    """The metaclass of classes that are not built."""

    _stands_for: tuple[str, Errors]

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        path, errors = cls._stands_for
        raise errors.attribute(_absent(f"{path}.{name}"))

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        path, errors = cls._stands_for
        raise errors.call(_absent(path))


class _Module(ModuleType):
    """A module that is not built."""

    def __init__(self, module: str, path: str, errors: Errors) -> None:
        super().__init__(module, f"{path}: not built yet.")
        self._stands_for = path, errors

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path, errors = self._stands_for
        raise errors.attribute(_absent(f"{path}.{name}"))


def _class(module: str, name: str, path: str, errors: Errors) -> Any:
    space = {"__module__": module, "__doc__": f"{path}: not built yet.", "_stands_for": (path, errors)}
    return _Type(name, (), space)


def _function(module: str, name: str, path: str, errors: Errors) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise errors.call(_absent(path))

    function.__module__, function.__name__, function.__qualname__ = module, name, name
    function.__doc__ = f"{path}: not built yet."
    function._stands_for = path, errors  # type: ignore[attr-defined]
    return function


def not_built_function(path: str, errors: Errors = _ERRORS) -> Any:
    """Return a placeholder for a function of a mirrored package, or for a method of one of its classes."""
    owner, _, name = path.rpartition(".")
    return _function(f"{_PACKAGE}.{owner}", name, path, errors)


def _module(module: str, name: str, path: str, errors: Errors) -> Any:
    # ``from package import module`` asks the package before it imports the module.
    whole = f"{module}.{name}"
    try:
        return importlib.import_module(whole)
    except ModuleNotFoundError as exc:
        if exc.name != whole:
            raise
        return _Module(whole, path, errors)


_MAKERS = {"classes": _class, "functions": _function, "modules": _module}
