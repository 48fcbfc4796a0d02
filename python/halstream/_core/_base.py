"""What Stream and Event share: ids, error classes, and how collected objects are closed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from .. import _native
from .._errors import KINDS, ForkError, WaitTimeoutError
from .._runtime import Owner
from ._reap import REAP_AT, drain, reap
from ._strict import strict

__all__ = [
    "BLOCKING_SYNC",
    "BLOCK_HOST",
    "EXTERNAL",
    "INTERPROCESS",
    "NON_BLOCKING",
    "REAP_AT",
    "TIMING",
    "Base",
    "Owner",
    "Uncopied",
    "drain",
    "reap",
    "repr_after_fork",
]

# Bits of the flags that the extension takes; the same numbers are in pybuild.
TIMING = 1
BLOCKING_SYNC = 2
INTERPROCESS = 4
EXTERNAL = 32
NON_BLOCKING = 1
BLOCK_HOST = 2


def repr_after_fork(function: Callable[[Any], str]) -> Callable[[Any], str]:
    """Decorate a ``__repr__`` so that it works in a forked child, where the runtime cannot be asked."""

    @functools.wraps(function)
    def __repr__(self: Any) -> str:
        try:
            return function(self)
        except ForkError:
            return f"<{type(self).__module__}.{type(self).__qualname__} of the parent process>"

    return __repr__


def uncopied(thing: object) -> TypeError:
    """Return the error of pickling or copying an object."""
    return TypeError(
        f"cannot pickle or copy a {type(thing).__name__}: it names live work of this "
        "process; create a new one where you need it"
    )


class Uncopied:
    """Objects that cannot be pickled or copied: they name live work of this process."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise uncopied(self)


class Base:
    """What Stream and Event share: the id, error classes, refusal to be copied."""

    _id: int
    _errors: ClassVar[Mapping[str, Callable[..., BaseException]]] = KINDS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        strict.add(cls)
        if "__repr__" in vars(cls):
            setattr(cls, "__repr__", repr_after_fork(vars(cls)["__repr__"]))  # noqa: B010

    def _wrong_type(self, operation: str, operand: object, expected: type) -> Exception:
        """Return the error for an operand that is not of the expected class."""
        kind = type(operand)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        return TypeError(f"{operation}() takes a halstream {expected.__name__}, not {name}")

    def _adopt(self, operand: object, expected: type) -> Any:
        """Return an object of the expected class for a foreign operand, None if there is none.

        Asked only after a call failed, so that calls with the right class pay nothing.
        """
        return None

    def _fail(
        self,
        exc: BaseException,
        operation: str,
        operand: object = None,
        expected: type | None = None,
    ) -> BaseException:
        if expected is not None and not isinstance(operand, expected):
            return self._wrong_type(operation, operand, expected)
        return _native.error(exc, self._errors)

    def _synchronize(self, function: Callable[[int, int], int], timeout: float | None) -> None:
        try:
            done = _native.wait(function, self._id, timeout)
            state = "" if done else _native.describe(self._id)
        except RuntimeError as exc:
            raise self._fail(exc, "synchronize") from None
        if not done:
            kind = self._errors.get("timeout", WaitTimeoutError)
            raise kind(f"not done within {timeout} s: {state}", operation="synchronize")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise uncopied(self)
