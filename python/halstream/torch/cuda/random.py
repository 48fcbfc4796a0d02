"""torch.cuda.random (2.15): seeds are kept; nothing here draws random numbers, and states are tensors."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

from ..._core import _current
from ..._runtime import State, runtime
from .._device import count
from .._errors import not_built as _not_built

__all__ = ["initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all"]

# The initial seed of torch's generators.
_DEFAULT = 67280421310721


class _Seeds(State):
    """The seed of each device's generator."""

    def __init__(self) -> None:
        self.chosen: dict[int, int] = {}

    def reset(self) -> None:
        self.chosen.clear()

    begin = reset

    def snapshot(self) -> dict[int, int]:
        return dict(self.chosen)

    def restore(self, saved: dict[int, int]) -> None:
        self.chosen.clear()
        self.chosen.update(saved)


_seeds = runtime.add("torch seeds", _Seeds())


def manual_seed(seed: int) -> None:
    """torch.cuda.manual_seed (2.15), of the current device."""
    _seeds.chosen[_current.current_device()] = operator.index(seed)


def manual_seed_all(seed: int) -> None:
    """torch.cuda.manual_seed_all (2.15)."""
    number = operator.index(seed)
    _seeds.chosen.update(dict.fromkeys(range(count()), number))


def seed() -> None:
    """torch.cuda.seed (2.15): a random seed for the current device."""
    manual_seed(_random())


def seed_all() -> None:
    """torch.cuda.seed_all (2.15): one random seed for all devices."""
    manual_seed_all(_random())


def initial_seed() -> int:
    """torch.cuda.initial_seed (2.15): the seed of the current device."""
    return _seeds.chosen.get(_current.current_device(), _DEFAULT)


def _random() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 11


__getattr__: Callable[[str], Any] = _not_built(__name__)
