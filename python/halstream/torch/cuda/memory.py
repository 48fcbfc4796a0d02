"""torch.cuda.memory (2.15): the allocator and its figures.

The allocator is the runtime's. Its figures count all memory of a device: what
`caching_allocator_alloc` gives, and arrays with and without a stream.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import _core as core
from ... import _memory
from ..._core import _interop
from ..._memory import _addresses
from ..._runtime import State, runtime
from .._device import count, device_index, existing
from .._errors import ERRORS, dialect_errors
from .._errors import not_built as _not_built
from ._guards import current_stream
from .streams import Stream

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]


def _ordinal(device: Any) -> int:
    return existing(device_index(device, optional=True))


@dialect_errors
def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """torch.cuda.caching_allocator_alloc (2.15): an address; without `stream` the current one's."""
    if stream is None:
        stream = current_stream(device)
    elif isinstance(stream, int):
        stream = Stream.from_handle(stream, _ordinal(device))
    elif not isinstance(stream, core.Stream):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` "
            "representing a pointer to a existing stream"
        )
    if size == 0:
        return 0
    _check_fraction(size, stream._ordinal)
    return _addresses.alloc_in_order(stream, size)


@dialect_errors
def caching_allocator_delete(mem_ptr: int) -> None:
    """torch.cuda.caching_allocator_delete (2.15): in the order of the memory's stream."""
    if mem_ptr:
        _addresses.free_on_own_stream(mem_ptr)


@dialect_errors
def empty_cache() -> None:
    """torch.cuda.empty_cache (2.15): waits for freed memory that pending work uses."""
    if _interop.initialized():
        for ordinal in range(count()):
            _memory.empty_cache(ordinal)


@dialect_errors
def mem_get_info(device: Any = None) -> tuple[int, int]:
    """torch.cuda.mem_get_info (2.15): free and total bytes."""
    return _memory.memory_info(_ordinal(device))


@dialect_errors
def _figure(device: Any, name: str) -> int:
    return _memory.memory_stats(_ordinal(device))[name] if _interop.initialized() else 0


def memory_allocated(device: Any = None) -> int:
    """torch.cuda.memory_allocated (2.15): sizes are rounded up to 512 bytes and more."""
    return _figure(device, "allocated")


def max_memory_allocated(device: Any = None) -> int:
    """torch.cuda.max_memory_allocated (2.15)."""
    return _figure(device, "allocated_peak")


def memory_reserved(device: Any = None) -> int:
    """torch.cuda.memory_reserved (2.15)."""
    return _figure(device, "reserved")


def max_memory_reserved(device: Any = None) -> int:
    """torch.cuda.max_memory_reserved (2.15)."""
    return _figure(device, "reserved_peak")


@dialect_errors
def reset_peak_memory_stats(device: Any = None) -> None:
    """torch.cuda.reset_peak_memory_stats (2.15)."""
    _memory.reset_memory_peaks(_ordinal(device))


def memory_cached(device: Any = None) -> int:
    """torch.cuda.memory_cached (2.15): deprecated name of `memory_reserved`."""
    _deprecated("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """torch.cuda.max_memory_cached (2.15): deprecated name of `max_memory_reserved`."""
    _deprecated("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """torch.cuda.reset_max_memory_allocated (2.15): deprecated, resets every peak."""
    _deprecated("reset_max_memory_allocated", "reset_peak_memory_stats")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """torch.cuda.reset_max_memory_cached (2.15): deprecated, resets every peak."""
    _deprecated("reset_max_memory_cached", "reset_peak_memory_stats")
    reset_peak_memory_stats(device)


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"torch.cuda.{name} is deprecated; use torch.cuda.{instead}", FutureWarning, stacklevel=3)


class _Fractions(State):
    """What part of its memory the process may take of each device."""

    def __init__(self) -> None:
        self.chosen: dict[int, float] = {}

    def reset(self) -> None:
        self.chosen.clear()

    begin = reset

    def snapshot(self) -> dict[int, float]:
        return dict(self.chosen)

    def restore(self, saved: dict[int, float]) -> None:
        self.chosen.clear()
        self.chosen.update(saved)


_open = dialect_errors(_interop.open_backend)
_fractions = runtime.add("torch memory fractions", _Fractions())


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """torch.cuda.set_per_process_memory_fraction (2.15): of what `caching_allocator_alloc` gives."""
    _open()
    where = _ordinal(device)
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _fractions.chosen[where] = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """torch.cuda.get_per_process_memory_fraction (2.15): 1.0 at first."""
    _open()
    return _fractions.chosen.get(_ordinal(device), 1.0)


def _check_fraction(size: int, where: int) -> None:
    fraction = _fractions.chosen.get(where)
    if fraction is None:
        return
    used, total = _memory.memory_stats(where)["allocated"], _memory.memory_info(where)[1]
    if used + size > fraction * total:
        _memory.count_out_of_memory(where)
        raise ERRORS["out_of_memory"](
            f"Allocation on device {where} would exceed allowed memory. (out of memory)\n"
            f"Currently allocated     : {used} bytes\nRequested               : {size} bytes\n"
            f"Device limit            : {total} bytes\n"
            f"PyTorch limit (set by user-supplied memory fraction)\n"
            f"                        : {int(fraction * total)} bytes",
            operation="allocate",
        )


def get_allocator_backend() -> str:
    """torch.cuda.get_allocator_backend (2.15): the pool is ordered by streams."""
    return "cudaMallocAsync"


__getattr__: Callable[[str], Any] = _not_built(__name__)
