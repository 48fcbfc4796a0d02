"""Python objects whose accesses count for the sanitizer."""

from __future__ import annotations

import io
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core import _hostfunc
from .._core._hostaccess import host_access
from .._errors import CallInHostFunctionError, HalError
from .._runtime import runtime

__all__ = ["Method", "Shared", "changes", "shared", "title_at"]

# The objects by the address of the byte that stands for each.
_objects: weakref.WeakValueDictionary[int, Shared] = runtime.keep(
    "objects that functions share", weakref.WeakValueDictionary()
)

# Methods that change a list, dict, set, deque or bytearray.
_CHANGES = frozenset({
    "append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove", "discard", "add",
    "clear", "sort", "reverse", "rotate", "update", "setdefault", "__setitem__", "__delitem__", "__iadd__", "__imul__",
    "__ior__", "intersection_update", "difference_update", "symmetric_difference_update",
})  # fmt: skip


class Shared:
    """A Python object that functions on streams share; see `shared`."""

    __slots__ = ("__weakref__", "_byte", "_object")

    def __init__(self, value: Any) -> None:
        self._object = value
        self._byte = np.zeros(1, np.uint8)
        _objects[self._byte.__array_interface__["data"][0]] = self

    @property
    def value(self) -> Any:
        """The object itself, whose use through it does not count."""
        return self._object

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._byte.__array_interface__

    @property
    def nbytes(self) -> int:
        """1: a byte stands for the object in accounts of accesses."""
        return 1

    def _keep(self) -> None:
        """Keep the address while a sanitizer is on: another object that got it would have these accesses."""
        if _hostfunc.keep is not None:
            _hostfunc.keep(self._byte)

    def _access(self, name: str) -> None:
        self._keep()
        try:
            host_access(self._byte, "w" if changes(self, name) else "r")
        except CallInHostFunctionError:
            return  # the function has it in its account
        except HalError:
            return  # no backend: nothing is checked

    def __getattr__(self, name: str) -> Any:
        if name in Shared.__slots__:
            raise AttributeError(name)  # of a copy that was not initialised
        found = getattr(self._object, name)
        return Method(self, name, found) if callable(found) else found

    def _call(self, name: str, *args: Any) -> Any:
        self._access(name)
        return getattr(self._object, name)(*args)

    def __getitem__(self, key: Any) -> Any:
        return self._call("__getitem__", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._call("__setitem__", key, value)

    def __delitem__(self, key: Any) -> None:
        self._call("__delitem__", key)

    def __iter__(self) -> Iterator[Any]:
        self._access("__iter__")
        return iter(self._object)

    def __len__(self) -> int:
        self._access("__len__")
        return len(self._object)

    def __contains__(self, value: object) -> bool:
        self._access("__contains__")
        return value in self._object

    def __bool__(self) -> bool:
        self._access("__bool__")
        return bool(self._object)

    def __iadd__(self, other: Any) -> Shared:
        self._access("__iadd__")
        self._object += other
        return self

    def __eq__(self, other: object) -> bool:
        self._access("__eq__")
        return bool(self._object == (other._object if isinstance(other, Shared) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<shared {type(self._object).__name__}>"


class Method:
    """A method of a shared object."""

    def __init__(self, owner: Shared, name: str, function: Any) -> None:
        self.owner, self.name, self._function = owner, name, function
        self.__qualname__ = f"{type(owner.value).__name__}.{name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.owner._access(self.name)
        return self._function(*args, **kwargs)


def changes(one: Shared, method: str) -> bool:
    """Return whether a method changes a shared object; of a file each one may, as it has a position."""
    return method in _CHANGES or isinstance(one.value, io.IOBase)


def shared(value: Any) -> Shared:
    """Return an object that stands for `value` and whose accesses count for the sanitizer.

    Lists, dicts, sets, bytearrays, files and other objects that functions on
    streams share are no memory of a device: without this, what happens to
    them is not looked at.

    Parameters
    ----------
    value : object
        Not an array, whose memory counts anyway.

    Returns
    -------
    Shared
        Used in place of the object. Methods that change it, such as
        ``append``, count as writes, others as reads, of the whole object; so
        do ``reads=`` and ``writes=`` that name it.

    Raises
    ------
    TypeError
        For an array.

    Notes
    -----
    Contract V22. In functions the code is looked at when they are enqueued, as
    for captured arrays; declare what it cannot show.

    Examples
    --------
    >>> import halstream as hs
    >>> with hs.sanitize(on="collect") as report:
    ...     one, two, results = hs.Stream(), hs.Stream(), hs.shared([])
    ...     one.call(results.append, 1)
    ...     two.call(results.append, 2)
    ...     hs.synchronize()
    >>> len(report.races)
    1
    """
    if isinstance(value, Shared):
        return value
    if hasattr(value, "__array_interface__") or getattr(value, "ptr", None) is not None:
        raise TypeError(f"shared() is for Python objects: the memory of a {type(value).__name__} counts anyway")
    return Shared(value)


def title_at(address: int) -> str:
    """Return what reports call the shared object that a byte stands for, such as ``list``; '' if it is none's."""
    found = _objects.get(address)
    return "" if found is None else type(found.value).__name__
