"""LaunchConfig: the size of a launch."""

from __future__ import annotations

from typing import Any

from ..._core._strict import strict
from ._device import Device
from ._errors import CUDAError

__all__ = ["LaunchConfig"]

Size = tuple[int, int, int]


class LaunchConfig:
    """cuda.core.LaunchConfig (1.2.2); with a cluster the grid counts clusters.

    Difference: kernels of a stream never overlap, whatever `programmatic_stream_serialization` says.
    """

    __slots__ = ("block", "cluster", "grid", "is_cooperative", "programmatic_stream_serialization", "shmem_size")

    def __init__(
        self,
        grid: Any = None,
        cluster: Any = None,
        block: Any = None,
        shmem_size: int | None = None,
        is_cooperative: bool = False,
        programmatic_stream_serialization: bool = False,
    ) -> None:
        self.grid: Size = _size("grid", grid)
        self.block: Size = _size("block", block)
        self.cluster: Size | None = None
        if cluster is not None:
            capability = Device().compute_capability
            if capability < (9, 0):
                raise CUDAError(
                    "thread block clusters are not supported on devices with compute capability < 9.0 (got "
                    f"{capability})"
                )
            self.cluster = _size("cluster", cluster)
        self.shmem_size: int = 0 if shmem_size is None else shmem_size
        self.is_cooperative = bool(is_cooperative)
        self.programmatic_stream_serialization = bool(programmatic_stream_serialization)

    @property
    def _blocks(self) -> Size:
        """The grid in blocks."""
        x, y, z = self.grid
        if self.cluster is None:
            return self.grid
        i, j, k = self.cluster
        return x * i, y * j, z * k

    def _identity(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, LaunchConfig) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        names = ("grid", "cluster", "block", "shmem_size", "is_cooperative", "programmatic_stream_serialization")
        return f"LaunchConfig({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _size(name: str, given: Any) -> Size:
    """Return three lengths for an integer, or for up to three of them.

    Raises
    ------
    ValueError
        If it is something else, or one is not positive.
    """
    text = f"LaunchConfig.{name} must be an int, or a tuple with up to 3 ints"
    numbers = (given,) if isinstance(given, int) else given
    if not isinstance(numbers, tuple):
        raise ValueError(f"{text} (got {type(given)})")
    if len(numbers) > 3:
        raise ValueError(f"{text} (got tuple with length {len(numbers)})")
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError(f"{text} (got {given})")
    for number in numbers:
        if number < 1:
            raise ValueError(f"LaunchConfig.{name} value must be >= 1 (got {number})")
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z


LaunchConfig.__module__ = "halstream.cuda.core"
strict.add(LaunchConfig)
