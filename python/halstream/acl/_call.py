"""What every ACL function shares: how arguments are read, and codes in place of exceptions."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from .._errors import HalError
from . import _codes as codes
from ._session import session
from ._table import MASK, refuse

P = ParamSpec("P")
R = TypeVar("R")


def _handle(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value & MASK


def _unsigned(value: Any) -> int:
    return _handle(value) & 0xFFFFFFFF


def _signed(value: Any) -> int:
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise TypeError
    return number


def _callable(value: Any) -> Any:
    if not callable(value):
        raise TypeError
    return value


def _mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError
    return value


#: Operations that a capture refuses because the host would wait for the device.
_UNSAFE = ("copy", "fill", "allocate", "allocate pinned memory")
# Whose time limit is the call's own, not one of work on a stream.
_OWN_LIMITS = ("synchronize", "process")

# h: handle or 64-bit number, masked; u: 32 bits, masked; i: 32 bits with sign;
# f: function; d: dict; s: text; o: anything.
_READERS: dict[str, Callable[[Any], Any]] = {
    "h": _handle,
    "u": _unsigned,
    "i": _signed,
    "f": _callable,
    "d": _mapping,
    "s": _text,
    "o": lambda value: value,
}


def command(
    kinds: str = "",
    failed: tuple[Any, ...] = (),
    *,
    home: str = "acl.rt",
    **by_kind: int,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate an ACL function.

    Parameters
    ----------
    kinds : str
        One letter of `_READERS` for each argument; those after ``*`` may be
        left out. A function without arguments ignores those it gets, as
        pyACL's do.
    failed : tuple
        What stands before the code when the function fails.
    home : str
        The module's name in pyACL.
    **by_kind : int
        Codes for kinds of errors that this function returns differently.

    Returns
    -------
    callable
        The decorator. The function returns what pyACL's returns; the core's
        errors become codes, wrong arguments raise `TypeError`.
    """
    table = {**codes.BY_KIND, **by_kind}
    needed, _, rest = kinds.partition("*")
    readers = tuple(_READERS[kind] for kind in needed + rest)
    # Plain positive numbers in so many places need no reading.
    plain = (int,) * len(needed) if set(kinds) <= set("hiu") else ()
    short = [i for i, kind in enumerate(needed) if kind != "h"]
    if len(short) > 1:
        plain = ()
    limited = short[0] if short else -1

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{home}.{function.__name__}"
        body = cast(Callable[..., Any], function)

        def read(args: tuple[Any, ...]) -> tuple[Any, ...]:
            try:
                if not len(needed) <= len(args) <= len(readers):
                    raise TypeError
                return tuple(r(a) for r, a in zip(readers, args, strict=False))
            except TypeError:
                raise TypeError(f"{name} args parse failed") from None

        def fail(exc: HalError, args: tuple[Any, ...]) -> Any:
            if exc.kind == "no_context" and session.adopt():
                return call(*args)
            if exc.kind == "unordered_access":
                raise exc  # about the program, and asked for: no failure of this call
            code = exc.code
            if code < codes.FIRST:
                code = table.get(exc.kind, codes.RT_INTERNAL_ERROR)
                if exc.kind == "capture":
                    unsafe = exc.code == 900 and exc.operation in _UNSAFE
                    code = codes.UNSAFE_IN_CAPTURE if unsafe else codes.BY_RULE.get(exc.code, code)
            if exc.kind == "host_function" or (exc.kind == "timeout" and exc.operation not in _OWN_LIMITS):
                session.report(code)
            session.remember(code, codes.text(name, code, str(exc)))
            # A copy: the caller may change what it gets.
            return (*copy.deepcopy(failed), code) if failed else code

        def is_plain(args: tuple[Any, ...]) -> bool:
            return (
                tuple(map(type, args)) == plain
                and min(args) >= 0
                and max(args) < 2**63
                and (limited < 0 or args[limited] < 2**31)
            )

        def call(*args: Any) -> Any:
            if not plain or not is_plain(args):
                args = read(args) if kinds else ()
            try:
                return body(*args)
            except HalError as exc:
                return fail(exc, args)

        # Most calls have one or two handles that are plain ints, which need no reading.
        def one(a: Any = None, /, *more: Any) -> Any:
            if type(a) is not int or more:
                return call(a, *more)
            try:
                return body(a)
            except HalError as exc:
                return fail(exc, (a,))

        def two(a: Any = None, b: Any = None, /, *more: Any) -> Any:
            if type(a) is not int or type(b) is not int or more:
                return call(a, b, *more)
            try:
                return body(a, b)
            except HalError as exc:
                return fail(exc, (a, b))

        made = {"h": one, "hh": two}.get(kinds, call)
        return cast(Callable[P, R], functools.wraps(function)(made))

    return decorate


def seconds(ms: int) -> float | None:
    """Return a time limit of the host's waits: -1 is no limit, 0 is not allowed."""
    if ms == -1:
        return None
    if ms <= 0:
        raise refuse(codes.RT_PARAM_INVALID, f"the time limit is -1 or more than 0 milliseconds, not {ms}")
    return ms / 1000
