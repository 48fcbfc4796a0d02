"""What a function on a stream can reach without declaring it.

Arrays are found in closures, bound methods, partials, default arguments, globals
that the code names, attributes and containers. What the code certainly works on as
a whole counts as read, as an array argument does; of everything else it is only known that
the function can reach it.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import sys
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import _sites
from .._core._declared import Declared, pieces
from .._core._lookup import PAGEABLE, kind_of
from .._memory._array import Array
from . import kept as _kept
from .attributes import MISSING, attribute_of, items_of
from .contents import of_call, of_method
from .shared import Method, Shared, changes
from .uses import Origin, Use, uses

__all__ = ["DEPTH", "OBJECTS", "Reach", "Reached", "reach_of", "title"]

#: How many calls, and how many containers in each other, are followed.
DEPTH = 4
#: How many objects are looked at for one function.
OBJECTS = 256

# Attributes of arrays that say nothing of their contents.
_SHAPE = frozenset({
    "shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags", "base", "ctypes", "__class__",
    "__array_interface__", "device", "ptr", "data_ptr",
})  # fmt: skip
_PLAIN = (int, float, complex, str, bytes, bool, type(None), types.ModuleType, type, np.generic, np.dtype)
_BUILT_IN = (types.BuiltinFunctionType, types.MethodWrapperType, np.ufunc)
# Modules in C of which is known that they use no memory but that of their arguments.
_KNOWN = frozenset({"numpy", "halstream"})


class Reached(NamedTuple):
    """Memory that a function can reach."""

    name: str  #: of the object, as the function has it
    how: str  #: in which way, such as ``captured by `step` ``
    ranges: tuple[tuple[int, int, int, int], ...]  #: start, bytes, pitch and count of its pieces
    read: bool  #: it counts as read
    write: bool = False  #: it counts as written

    def __str__(self) -> str:
        return f"`{self.name}`, {self.how}"

    def holds(self, start: int, nbytes: int) -> bool:
        """Return True if bytes overlap it."""
        return any(
            start < at + (count - 1) * pitch + size and at < start + nbytes for at, size, pitch, count in self.ranges
        )


class Reach(NamedTuple):
    """What is known of the accesses of a function that does not declare them."""

    found: tuple[Reached, ...]
    unknown: tuple[str, ...]  #: why there may be others

    @property
    def account(self) -> str:
        """What the extension takes: memory that is read, and memory that can be reached."""
        parts = []
        for one in self.found:
            kind = "w" if one.write else "r" if one.read else "o"
            for start, size, pitch, count in one.ranges:
                parts.append(f"{kind}:{start}:{size}" if count == 1 else f"{kind}:{start}:{size}:{pitch}:{count}")
        return " ".join(parts)


def reach_of(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Reach:
    """Return what a function that is given these arguments can reach, without the arrays among them."""
    walk = _Walk(title(function))
    walk.arguments(args, kwargs)
    walk.function(function, args, dict(kwargs), 0, True)
    return Reach(tuple(walk.found.values()), tuple(walk.unknown))


class _Value(NamedTuple):
    """An object, what the function calls it, and in which way it got there."""

    value: Any
    name: str
    how: str


_NOBODY = _Value(MISSING, "", "")


class _Walk:
    """Finds what one function can reach."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.found: dict[tuple[int, tuple[Any, ...]], Reached] = {}
        self.unknown: dict[str, None] = {}
        self.given: set[int] = set()  # arrays that are declared as arguments already
        self.entered: set[tuple[Any, ...]] = set()
        self.left = OBJECTS

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        for value in itertools.chain(args, kwargs.values()):
            if isinstance(value, np.ndarray):
                self.given.add(id(value))

    # Functions.

    def function(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], depth: int, sure: bool) -> None:
        """Follow a call; values are as they are or `_Value`."""
        if isinstance(f, Declared):
            return  # it says what it works on
        if isinstance(f, Method):
            self.share(_Value(f.owner, "the object", f"whose method `{self.title}` is"), changes(f.owner, f.name), sure)
            f = np.add  # of its arguments
        if isinstance(f, functools.partial):
            if depth == 0:
                for number, value in enumerate(f.args):
                    self.bound(value, f"argument {number + 1}")
                for name, value in f.keywords.items():
                    self.bound(value, name)
            self.function(f.func, (*f.args, *args), {**f.keywords, **kwargs}, depth, sure)
        elif isinstance(f, types.MethodType):
            inner = f.__func__
            library = isinstance(inner, types.FunctionType) and not _of_program(inner)
            self.function(inner, args if library else (f.__self__, *args), kwargs, depth, sure)
        elif isinstance(f, types.FunctionType):
            self.python(f, args, kwargs, depth, sure)
        elif isinstance(f, (type, *_BUILT_IN)):
            self.built_in(f, args, kwargs, depth, sure)
        else:
            call = attribute_of(type(f), "__call__")
            if isinstance(call, types.FunctionType) and _of_program(call):
                self.python(call, (f, *args), kwargs, depth, sure)
            elif _top_module(type(f)) in _KNOWN:
                self.given_to(of_call(f, kwargs), args, kwargs, sure)
            else:
                self.say(f"`{title(f)}` is native code")

    def bound(self, value: Any, name: str) -> None:
        """Count an array that a partial has as one of the arguments."""
        if isinstance(value, np.ndarray):
            self.array(_Value(value, name, f"bound by the partial of `{self.title}`"), True)

    def built_in(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], depth: int, sure: bool) -> None:
        owner = getattr(f, "__self__", None)
        if isinstance(owner, np.ndarray):
            how = of_method((f.__name__,), kwargs)
            if how:
                self.array(_Value(owner, "the array", f"whose method `{self.title}` is"), sure and how == "whole")
        module = _top_module(f)
        if module not in _KNOWN and module not in sys.stdlib_module_names and not isinstance(f, type):
            self.say(f"`{title(f)}` is native code")
        self.given_to(of_call(f, kwargs), args, kwargs, sure)

    def given_to(self, how: str, args: tuple[Any, ...], kwargs: dict[str, Any], sure: bool) -> None:
        """Note what a function that is not followed does with what it is given."""
        for value in itertools.chain(args, kwargs.values()) if how else ():
            self.take(_value(value), how, sure)

    def python(
        self, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], depth: int, sure: bool
    ) -> None:
        used = uses(f.__code__) if _of_program(f) else ()
        if not used and not args and not kwargs:
            return
        key = (f.__code__, sure, *(id(_value(a).value) for a in (*args, *kwargs.values())))
        if key in self.entered:
            return
        self.entered.add(key)
        if depth > DEPTH or self.left <= 0:
            self.say(f"it calls more than {DEPTH} functions in each other")
            return
        if not _of_program(f):
            self.given_to("part", args, kwargs, sure)
            return
        names = _Names(f, args, kwargs, self.title if depth == 0 else title(f))
        for use in used:
            self.follow(use, names, depth, sure)

    def follow(self, use: Use, names: _Names, depth: int, sure: bool) -> None:
        sure = sure and use.sure
        if use.how != "call":
            if use.origin is not None and (
                use.how != "return" or depth
            ):  # nobody gets what the function itself returns
                self.take(self.resolve(use.origin, names, depth), self.how(use.origin, use.how, names, depth), sure)
            return
        callee = _NOBODY if use.origin is None else self.resolve(use.origin, names, depth)
        positional = [self.resolve(o, names, depth) if o else _NOBODY for name, o in use.arguments if not name]
        keywords = {name: self.resolve(o, names, depth) if o else _NOBODY for name, o in use.arguments if name}
        if isinstance(callee.value, (np.ndarray, Array)):
            how = of_method(use.origin.attributes or ("__call__",), keywords) if use.origin else "part"
            self.take(callee, how or "store", sure)
            self.given_to("whole" if how == "whole" else "part", tuple(positional), keywords, sure)
            return
        if isinstance(callee.value, Shared) and use.origin is not None:
            self.share(callee, changes(callee.value, use.origin.attributes[-1]), sure)
            callee = callee._replace(value=np.add)
        if callee.value is MISSING:
            for value in itertools.chain(positional, keywords.values()):
                self.take(value, "part", sure)
        else:
            self.function(callee.value, tuple(positional), dict(keywords), depth + 1, sure)

    # Objects.

    def resolve(self, origin: Origin, names: _Names, depth: int) -> _Value:
        """Return the object that a name stands for, and an array for what is taken of the array."""
        found = names.find(origin)
        for number, attribute in enumerate(origin.attributes):
            value = found.value
            if isinstance(value, (np.ndarray, Array)):
                return _NOBODY if attribute in _SHAPE else found
            if isinstance(value, Shared):
                return _NOBODY if attribute == "value" else found
            if value is MISSING:
                return _NOBODY
            name = ".".join((origin.name, *origin.attributes[: number + 1]))
            one = attribute_of(value, attribute)
            if isinstance(one, property):
                self.function(one.fget, (found,), {}, depth + 1, True)
                return _NOBODY
            if one is MISSING:
                self.contents(found, DEPTH)  # the object computes it, from what it has
            found = _Value(one, name, found.how)
        return found

    def how(self, origin: Origin, how: str, names: _Names, depth: int) -> str:
        """Return what is done with the object itself: ``x.T[0]`` is another element than ``x[0]``."""
        if how.startswith("[") and origin.attributes:
            owner = self.resolve(origin._replace(attributes=origin.attributes[:-1]), names, depth)
            return "part" if isinstance(owner.value, (np.ndarray, Array)) else how
        return how

    def take(self, given: _Value, how: str, sure: bool) -> None:
        """Note that the function works on an object."""
        value = given.value
        if isinstance(value, np.ndarray):
            element = _element(value, how) if sure and id(value) not in self.given else None
            if element is not None:
                self.array(_Value(element, given.name + how, given.how), True)
                return
            if id(value) not in self.given and how != "store":
                self.array(given, how in ("whole", "truth") and sure)
        elif isinstance(value, Shared):
            self.share(given, how == "store" or changes(value, ""), sure)
        elif how != "truth":
            self.contents(given, DEPTH)

    def share(self, given: _Value, write: bool, sure: bool) -> None:
        """Note that the function works on a shared object."""
        ranges = tuple(pieces(given.value))
        if not sure:
            self.say(f"it can reach `{given.name}`", given)
            return
        known = self.found.get((id(given.value), ranges))
        if known is None or (write and not known.write):
            given.value._keep()
            self.found[id(given.value), ranges] = Reached(given.name, given.how, ranges, True, write)

    def array(self, given: _Value, read: bool) -> None:
        value = given.value
        if not value.size or id(value) in self.given:
            return
        _kept.keep(value)
        ranges = tuple(pieces(value))
        known = self.found.get((id(value), ranges))
        if known is None or (read and not known.read):
            self.found[id(value), ranges] = Reached(given.name, given.how, ranges, read)
        if not read and (known is None or not known.read) and kind_of(ranges[0][0]) != PAGEABLE:
            self.say(f"it can reach `{given.name}`", given)

    def contents(self, given: _Value, depth: int) -> None:
        """Look for arrays in an object that the function works on in some way."""
        value = given.value
        if value is MISSING or isinstance(value, (*_PLAIN, Array)) or callable(value):
            return
        if isinstance(value, np.ndarray):
            self.array(given, False)
            return
        if isinstance(value, Shared):
            self.share(given, False, False)
            return
        if depth == 0 or self.left <= 0:
            self.say(f"it can reach more than {OBJECTS} objects, or objects more than {DEPTH} deep")
            return
        for name, one in itertools.islice(items_of(value), self.left + 1):
            self.left -= 1
            self.contents(_Value(one, given.name + name, given.how), depth - 1)

    def say(self, why: str, given: _Value | None = None) -> None:
        if given is not None:
            for reached in self.found.values():
                if reached.name == given.name and reached.read:
                    return
        self.unknown[why] = None


class _Names:
    """The objects that the names in a function's code stand for."""

    def __init__(self, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], title: str) -> None:
        self.title = title
        self.globals = f.__globals__
        self.free: dict[str, Any] = {}
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=False):
            try:
                self.free[name] = cell.cell_contents
            except ValueError:  # it has no value yet
                continue
        code = f.__code__
        positional = code.co_varnames[: code.co_argcount]
        self.defaults = dict(zip(positional[::-1], (f.__defaults__ or ())[::-1], strict=False))
        self.defaults.update(f.__kwdefaults__ or {})
        self.local: dict[str, Any] = dict(zip(positional, args, strict=False))
        self.local.update({name: value for name, value in kwargs.items() if name in code.co_varnames})
        if code.co_flags & 4:
            self.local[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]] = args[len(positional) :]

    def find(self, origin: Origin) -> _Value:
        name = origin.name
        if origin.scope == "global":
            value = self.globals.get(name, getattr(builtins, name, MISSING))
            return _Value(value, name, f"a global of `{self.title}`")
        if name in self.free and origin.scope == "free":
            return _Value(self.free[name], name, f"captured by `{self.title}`")
        if name in self.local:
            return _value(self.local[name], name, f"an argument of `{self.title}`")
        if name in self.defaults:
            return _Value(self.defaults[name], name, f"a default argument of `{self.title}`")
        return _NOBODY


def _element(array: np.ndarray, how: str) -> np.ndarray | None:
    """Return the element that ``x[5]`` reads as a part of an array, None where it is not certain to read just that."""
    # Of other types an index makes a view, which reads nothing, or runs code of the program.
    if not how.startswith("[") or type(array) is not np.ndarray or array.ndim != 1 or array.dtype.kind not in "biufc":
        return None
    index = int(how[1:-1])
    index += len(array) * (index < 0)
    return array[index : index + 1] if 0 <= index < len(array) else None


def _value(given: Any, name: str = "", how: str = "") -> _Value:
    """Return an argument with the name that it has where it comes from, else with this one."""
    return given if isinstance(given, _Value) else _Value(given, name, how)


def _of_program(f: types.FunctionType) -> bool:
    return _sites.is_program(f.__code__.co_filename)


def _top_module(f: Any) -> str:
    owner = getattr(f, "__self__", None)
    module = getattr(f, "__module__", None) or getattr(type(owner), "__module__", None) or type(f).__module__
    return str(module).partition(".")[0]


def title(f: Any) -> str:
    """Return what the program calls a function."""
    while isinstance(f, (functools.partial, Declared)):
        f = f.func if isinstance(f, functools.partial) else f.function
    name = getattr(f, "__qualname__", "") or type(f).__qualname__
    return str(name).rpartition("<locals>.")[2]
