"""Attributes and elements of objects, looked up without running code of the program."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["MISSING", "attribute_of", "items_of"]

CONTAINERS = (list, tuple, set, frozenset, deque)


class _Missing:
    """Stands for an object that is not known before the function runs."""


MISSING = _Missing()


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute without running code of the program, `MISSING` if that cannot be."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    if isinstance(own, Mapping) and name in own:
        return own[name]
    for cls in (value if isinstance(value, type) else type(value)).__mro__:
        found = vars(cls).get(name, MISSING)
        if found is MISSING:
            continue
        if isinstance(found, types.FunctionType) and not isinstance(value, type):
            return types.MethodType(found, value)
        if isinstance(found, (staticmethod, classmethod)):
            return found.__func__ if isinstance(found, staticmethod) else types.MethodType(found.__func__, type(value))
        if isinstance(found, types.MemberDescriptorType):
            try:
                return found.__get__(value)
            except AttributeError:
                return MISSING
        if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return getattr(value, name, MISSING)
        return MISSING if hasattr(type(found), "__get__") and not isinstance(found, property) else found
    return MISSING


def items_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a container or an object holds, with the way from it to there."""
    if isinstance(value, CONTAINERS):
        for number, one in enumerate(list(value)):
            yield f"[{number}]", one
    elif isinstance(value, dict):
        for key, one in list(value.items()):
            yield f"[{key!r}]", one
    else:
        try:
            own = object.__getattribute__(value, "__dict__")
        except AttributeError:
            own = {}
        for name, one in list(own.items()):
            yield f".{name}", one
        for cls in type(value).__mro__:
            for name, member in list(vars(cls).items()):
                if isinstance(member, types.MemberDescriptorType):
                    yield f".{name}", getattr(value, name, None)
