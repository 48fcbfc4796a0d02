"""Names that a mirrored package has and its dialect does not: they say so instead of being unknown.

Each dialect lists the public names of the mirrored package's modules and classes in
``names.txt``: a line for each, ``package.module: name name ...``.
"""

from __future__ import annotations

import dis
import functools
import importlib.resources
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .._errors import NotSupportedError

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


class NotBuiltError(NotSupportedError, AttributeError):
    """A name of the mirrored package that halstream has not built yet."""


class NotBuiltImportError(NotSupportedError, ImportError):
    """The same for ``from module import name``."""


@functools.cache
def names(dialect: str) -> dict[str, frozenset[str]]:
    """Return the public names of a mirrored package, by its module or class."""
    text = importlib.resources.files(f"halstream.{dialect}").joinpath("names.txt")
    found = {}
    for line in text.read_text(encoding="utf-8").splitlines():
        where, _, listed = line.partition(":")
        found[where] = frozenset(listed.split())
    return found


def refuse_unbuilt(module: str) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a dialect's module.

    Parameters
    ----------
    module : str
        The module's ``__name__``, ``halstream.paddle.device`` for instance.

    Returns
    -------
    callable
        It raises `NotBuiltError` (in a ``from`` import `NotBuiltImportError`) for
        a name of the mirrored module, and `AttributeError` for any other.
        ``hasattr`` is False for both.
    """
    mirrored = module.removeprefix("halstream.")
    dialect = mirrored.partition(".")[0]

    def __getattr__(name: str) -> NoReturn:
        if not name.startswith("_") and name in names(dialect).get(mirrored, ()):
            text = f"{mirrored}.{name} is not built yet in {module}"
            if _imports(sys._getframe(1)):
                raise NotBuiltImportError(text)
            raise NotBuiltError(text)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


def _imports(frame: Any) -> bool:
    """Return True if what a frame does now is ``from module import name``."""
    at = frame.f_lasti
    return at >= 0 and bool(frame.f_code.co_code[at] == _IMPORT_FROM)


def refuse_attribute(owner: object, mirrored: str, name: str) -> NoReturn:
    """Raise for an attribute that an object of a dialect does not have.

    Parameters
    ----------
    owner : object
        The object that was asked.
    mirrored : str
        The class in the mirrored package, ``mindspore.Tensor`` for instance.
    name : str
        The attribute.

    Raises
    ------
    NotBuiltError
        If the mirrored class has the attribute.
    AttributeError
        If it does not.
    """
    if not name.startswith("_") and name in names(mirrored.partition(".")[0]).get(mirrored, ()):
        raise NotBuiltError(f"{mirrored}.{name} is not built yet in halstream")
    raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")
