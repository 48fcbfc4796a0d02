"""What the dialects share: their error classes, and calls that raise them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from .._errors import KINDS, HalError

P = ParamSpec("P")
R = TypeVar("R")


def family(base: type[HalError], also: Mapping[str, type[Exception]] | None = None) -> dict[str, type[HalError]]:
    """Make a dialect's error classes: one for each kind, all under the dialect's own.

    Parameters
    ----------
    base : type
        The dialect's documented class, a subclass of `HalError`.
    also : mapping of kind to class
        Documented built-in classes of single kinds, ``{"unrecorded": ValueError}``.

    Returns
    -------
    dict
        From each kind to a class under `base`, under the core's class of the
        kind, and under the one of `also`; all carry the name of `base`.
    """
    also = also or {}
    made: dict[str, type[HalError]] = {}

    def reduce(self: HalError) -> tuple[Any, ...]:
        # By name pickle would find the base, whose name all of them carry.
        return _unpickle, (base, self.kind, self.args, self.__dict__)

    for kind, core in KINDS.items():
        bases: tuple[type, ...] = (base,) if issubclass(base, core) else (base, core)
        extra = also.get(kind)
        if extra is not None and not any(issubclass(b, extra) for b in bases):
            bases = (*bases, extra)
        names: dict[str, Any] = {"__module__": base.__module__, "__doc__": core.__doc__, "kind": kind}
        if "__reduce__" not in vars(base):
            names["__reduce__"] = reduce
        made[kind] = type(base.__name__, bases, names)
    base._family = made  # type: ignore[attr-defined]
    return made


def _unpickle(base: Any, kind: str, args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    """Return a pickled exception of the class that `family` made of a base for a kind."""
    cls: type[HalError] = base._family[kind]
    exc = cls(*args[:1])
    exc.args = args
    exc.__dict__.update(attributes)
    return exc


def again(exc: HalError, kinds: Mapping[str, Callable[..., BaseException]]) -> BaseException:
    """Return the dialect's exception for one of the core's."""
    return kinds[exc.kind](str(exc), code=exc.code, operation=exc.operation)


def raising(
    kinds: Mapping[str, Callable[..., BaseException]],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function of a dialect so that the core's errors leave it as `kinds` has them."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except HalError as exc:
                if type(exc) is KINDS.get(exc.kind):
                    # None for the core's errors; a checked function may have raised one, too.
                    raise again(exc, kinds) from exc.__cause__
                raise

        return call

    return decorate
