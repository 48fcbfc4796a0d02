"""Tensors that no operation on other tensors makes: filled, counted and random ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import _current
from ..._dialects._compute import check_room, upload
from ..._dialects._random import Random
from ..._runtime import runtime
from .._target import target
from .tensor import Tensor

#: What `mindspore.set_seed` seeds.
generator = runtime.add("random numbers of mindspore", Random())


def set_seed(seed: int) -> None:
    """`mindspore.set_seed` of 2.10; the numbers that follow are NumPy's, not mindspore's."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"The argument 'seed' must be type of int, but got {type(seed)}.")
    if seed < 0:
        raise ValueError(f"The argument 'seed' must be greater or equal to 0, but got {seed}.")
    generator.reseed(seed)


def get_seed() -> int | None:
    """`mindspore.get_seed` of 2.10."""
    return generator.seed


def created(name: str, function: Callable[..., Any], shape: Any, dtype: Any, *args: Any) -> Tensor:
    """Return a tensor that ``function(*args, out=...)`` fills.

    On the target CPU the contents are there when the call returns, as in
    mindspore, whose programs rely on it: they make tensors on the default
    stream and use them on another one without an event. On GPU and Ascend the
    current stream fills them.
    """
    wanted = checked_shape(name, shape)
    if target() != "CPU":
        return Tensor._result(function, wanted, dtype, *args)
    check_room(wanted, dtype, _current.current_device())
    host = np.empty(wanted, dtype)
    function(*args, out=host)
    return Tensor._view(*upload(host, _current.current_device()))


def checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; mindspore's errors for what is none."""
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        wanted = tuple(operator.index(n) for n in lengths)
    except TypeError:
        raise TypeError(f'Failed calling {name} with "{name}()(shape={type(shape).__name__})".') from None
    for i, n in enumerate(wanted):
        if n < 0:
            raise ValueError(
                f"For primitive[{name}], the {i}th dimension of input shape must be greater than "
                f"or equal to 0, but got {n}."
            )
    return wanted


def fill(value: Any, *, out: Any) -> None:
    """Write one value to all elements."""
    out[...] = value


def copy_host(source: Any, *, out: Any) -> None:
    """Write the elements of a NumPy array."""
    np.copyto(out, source, casting="unsafe")
