"""Random numbers for tensors: a generator for each dialect, NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import State


class Random(State):
    """A generator with a seed; `state` determines the numbers that follow."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng()
        self.seed: int | None = None
        self._imported = self.snapshot()

    def reseed(self, seed: int) -> None:
        """Restart from a seed."""
        self.seed = seed
        self._generator = np.random.default_rng(seed & (2**64 - 1))

    def normal(self, shape: tuple[int, ...]) -> Any:
        """Return float64 numbers of the standard normal distribution."""
        return self._generator.standard_normal(shape)

    def uniform(self, shape: tuple[int, ...]) -> Any:
        """Return float64 numbers from 0 up to, but not including, 1."""
        return self._generator.random(shape)

    @property
    def state(self) -> dict[str, Any]:
        """Everything the next numbers depend on."""
        return dict(self._generator.bit_generator.state)

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._generator.bit_generator.state = value

    def snapshot(self) -> tuple[dict[str, Any], int | None]:
        return self.state, self.seed

    def restore(self, saved: tuple[dict[str, Any], int | None]) -> None:
        self.state, self.seed = saved

    def begin(self) -> None:
        self.restore(self._imported)
