"""What the mirrored packages have: their public names, and the parameters of their callables."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from typing import NamedTuple

from .._dialects._not_built import names

__all__ = [
    "DIALECTS", "Parameters", "also", "has", "kind", "members", "names_of", "parameters", "similar", "source",
    "version",
]  # fmt: skip

DIALECTS = ("torch", "paddle", "mindspore", "cupy", "cuda", "acl")
_PACKAGE = __name__.partition(".")[0]
# What texts call the packages whose names are not those of their dialects.
_CALLED: Mapping[str, str] = {"acl": "pyACL of CANN", "cuda": "cuda.core"}
# Classes of builds for GPUs, whose names the signatures of the build for CPUs lack.
_SAME = {"paddle.device.cuda.Stream": "CUDAStream", "paddle.device.cuda.Event": "CUDAEvent"}

# Classes that have nothing of the classes of the same name in other modules.
_OWN = ("torch.cpu.Stream", "torch.cpu.Event")

# Classes that inherit from one of Python's, whose names the signatures lack.
_BASES: Mapping[str, type] = {"paddle.device.Device": str}


class Parameters(NamedTuple):
    """The parameters of a callable."""

    positional: tuple[str, ...]  #: those that can be given by position, in order
    named: frozenset[str]  #: those that can be given by name
    required: frozenset[str]
    more_positional: bool  #: any number more
    more_named: bool

    @property
    def text(self) -> str:
        """The parameters as a reader writes them."""
        rest = sorted(self.named - set(self.positional))
        stars = ["*args"] * self.more_positional + ["**kwargs"] * self.more_named
        return ", ".join([*self.positional, *(f"{name}=" for name in rest), *stars])


class _Data(NamedTuple):
    versions: Mapping[str, str]
    callables: Mapping[str, str | None]


@functools.cache
def _data() -> _Data:
    versions = {"acl": "8.5"}
    callables: dict[str, str | None] = {}
    text = (pkgutil.get_data(_PACKAGE, "_lint/signatures.txt") or b"").decode()
    for line in text.splitlines():
        if line.startswith("#"):
            words = line.split()
            if len(words) == 3 and words[1] in DIALECTS:
                versions[words[1]] = words[2]
            continue
        name, colon, listed = line.partition(":")
        callables[name] = listed.strip() if colon else None
    return _Data(versions, callables)


def version(dialect: str) -> str:
    """Return the version of a package that the names and parameters are of."""
    return _data().versions[dialect]


def source(dialect: str) -> str:
    """Return a package with its version, for texts."""
    return f"{_CALLED.get(dialect, dialect)} {version(dialect)}"


def kind(module: str, name: str) -> str | None:
    """Return the kind of a module's name: classes, functions, modules or values; '' if it has none.

    None stands for a module of which no list is known.
    """
    listed = names(module.partition(".")[0]).get(module)
    return None if listed is None else listed.get(name, "")


@functools.cache
def _also() -> Mapping[str, frozenset[str]]:
    text = (pkgutil.get_data(_PACKAGE, "_lint/also.txt") or b"").decode()
    parted = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {module: frozenset(listed.split()) for module, _, listed in parted}


def also(module: str, name: str) -> bool:
    """Return whether a module has, or may have, a name that is not one of its public names."""
    return not _also().get(module, frozenset()).isdisjoint((name, "*"))


def has(module: str) -> bool:
    """Return whether the names of a module are known."""
    return module in names(module.partition(".")[0])


@functools.cache
def members(cls: str) -> frozenset[str]:
    """Return the public names of a class, empty where they are not known."""
    root, _, last = cls.rpartition(".")
    found = {name[len(cls) + 1 :] for name in _data().callables if name.startswith(f"{cls}.")}
    dialect = root.partition(".")[0]
    lists = names(dialect)
    for owner, listed in ({cls: lists[cls]} if cls in lists else lists).items():
        if owner.rpartition(".")[2] in (last, _SAME.get(cls)) and "attributes" in listed.values() and cls not in _OWN:
            found.update(listed)
    found.update(dir(_BASES.get(cls, object)))
    return frozenset(name for name in found if not name.startswith("_"))


@functools.cache
def parameters(name: str) -> Parameters | None:
    """Return the parameters of a callable without ``self``, None where they are not known."""
    text = _data().callables.get(name)
    if text is None:
        return None
    positional: list[str] = []
    named: set[str] = set()
    required: set[str] = set()
    more_positional = more_named = keyword_only = False
    for word in text.split():
        if word == "/":
            named -= set(positional)
        elif word.startswith("**"):
            more_named = True
        elif word.startswith("*"):
            keyword_only = True
            more_positional = len(word) > 1
        else:
            name_ = word.rstrip("=")
            named.add(name_)
            if not keyword_only:
                positional.append(name_)
            if name_ == word:
                required.add(name_)
    if positional[:1] in (["self"], ["cls"]):
        first = positional.pop(0)
        named.discard(first)
        required.discard(first)
    return Parameters(tuple(positional), frozenset(named), frozenset(required), more_positional, more_named)


def similar(name: str, known: frozenset[str]) -> str:
    """Return the known name that is most like one that is not, '' if none is."""
    import difflib

    found = difflib.get_close_matches(name, sorted(known), 1, 0.7)
    return found[0] if found else ""


def names_of(module: str) -> Mapping[str, str]:
    """Return the kind of each public name of a module, empty where they are not known."""
    return names(module.partition(".")[0]).get(module, {})
