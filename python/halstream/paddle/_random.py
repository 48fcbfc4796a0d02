"""The one generator of random numbers of `paddle` 3.3, its seed and its state; the numbers are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import State, runtime

__all__ = ["Generator", "GeneratorState", "generator", "get_rng_state", "seed", "set_rng_state"]


class Random(State):
    """NumPy's generator with a seed; `state` determines the numbers that follow."""

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


#: What `paddle.seed` seeds; its state is what `paddle.device.get_rng_state` returns.
generator = runtime.add("random numbers of paddle", Random())


class GeneratorState:
    """`paddle.base.core.GeneratorState` of 3.3: what the next random numbers depend on."""

    def __init__(self, state: dict[str, Any], seed: int) -> None:
        self._state = state
        self._seed = seed

    def current_seed(self) -> int:
        """Return the seed that the numbers began with."""
        return self._seed

    @classmethod
    def _now(cls) -> GeneratorState:
        return cls(generator.state, generator.seed or 0)

    def _restore(self) -> None:
        generator.state, generator.seed = self._state, self._seed


def get_rng_state(device: str | None = None) -> list[GeneratorState]:
    """`paddle.get_rng_state` of 3.3: a list of one state, for all devices."""
    if device is not None and not isinstance(device, str):
        raise ValueError(f"get_rng_state is not implemented for current device: {device}")
    return [GeneratorState._now()]


def set_rng_state(state_list: Any, device: str | None = None) -> None:
    """`paddle.set_rng_state` of 3.3."""
    for state in state_list:
        state._restore()


class Generator:
    """`paddle.base.core.Generator` of 3.3: the one generator there is here."""

    def manual_seed(self, seed: int) -> Generator:
        """Seed it."""
        generator.reseed(int(seed))
        return self

    def initial_seed(self) -> int:
        """Return the seed it began with."""
        return generator.seed or 0


def seed(seed: int) -> Generator:
    """`paddle.seed` of 3.3; the numbers that follow are NumPy's, not paddle's."""
    number = int(seed)
    if number < 0:
        raise TypeError(f"manual_seed(): incompatible function arguments: {number}")
    return Generator().manual_seed(number)
