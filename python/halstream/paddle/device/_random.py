"""Seeds and states of random numbers, marks of profilers, and what bfloat16 can do."""

from __future__ import annotations

from typing import Any

from .._names import device_to_place
from .._random import GeneratorState, generator

__all__ = [
    "GeneratorState",
    "get_rng_state",
    "ipc_collect",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "nvtx",
    "set_rng_state",
]


def get_rng_state(device: Any = None) -> GeneratorState:
    """`paddle.device.get_rng_state` of 3.3: one state for all devices."""
    device_to_place(device)
    return GeneratorState._now()


def set_rng_state(new_state: GeneratorState, device: Any = None) -> None:
    """`paddle.device.set_rng_state` of 3.3: one state for all devices."""
    device_to_place(device)
    if not isinstance(new_state, GeneratorState):
        raise TypeError(f"set_state(): incompatible function arguments. Invoked with: {new_state!r}")
    new_state._restore()


def manual_seed(seed: int) -> None:
    """`paddle.device.manual_seed` of 3.3."""
    generator.reseed(int(seed))


def manual_seed_all(seed: int) -> None:
    """`paddle.device.manual_seed_all` of 3.3: the same generator."""
    generator.reseed(int(seed))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """`paddle.device.is_bf16_supported` of 3.3: False, for tensors of bfloat16 are not built."""
    return False


def ipc_collect() -> None:
    """`paddle.device.ipc_collect` of 3.3: nothing to collect, for memory is not shared yet."""


class nvtx:
    """`paddle.device.nvtx` of 3.3: accepted, for no profiler of NVIDIA's sees them."""

    @staticmethod
    def range_push(msg: str) -> None:
        """`paddle.device.nvtx.range_push` of 3.3."""
        if not isinstance(msg, str):
            raise TypeError(f"nvprof_nvtx_push(): incompatible function arguments. Invoked with: {msg!r}")

    @staticmethod
    def range_pop() -> None:
        """`paddle.device.nvtx.range_pop` of 3.3."""
