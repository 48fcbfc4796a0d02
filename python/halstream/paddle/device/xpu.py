"""paddle.device.xpu of 3.3: no backend stands for an XPU, so calls raise RuntimeError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._dialects._not_built import not_built
from ..base._events import XPUEvent as Event
from ..base._streams import XPUStream as Stream

__all__ = [
    "Event",
    "Stream",
    "current_stream",
    "device_count",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "set_stream",
    "synchronize",
]


def device_count() -> int:
    """`paddle.device.xpu.device_count` of 3.3: always 0."""
    return 0


def synchronize(device: Any = None) -> None:
    """`paddle.device.xpu.synchronize` of 3.3."""
    raise _absent("device synchronize")


def current_stream(device: Any = None) -> Any:
    """`paddle.device.xpu.current_stream` of 3.3."""
    raise _absent("the current stream")


def set_stream(stream: Any) -> Any:
    """`paddle.device.xpu.set_stream` of 3.3."""
    raise _absent("the current stream")


def empty_cache() -> None:
    """`paddle.device.xpu.empty_cache` of 3.3."""
    raise _absent("its memory")


def max_memory_allocated(device: Any = None) -> int:
    """`paddle.device.xpu.max_memory_allocated` of 3.3."""
    raise _absent("its memory")


def max_memory_reserved(device: Any = None) -> int:
    """`paddle.device.xpu.max_memory_reserved` of 3.3."""
    raise _absent("its memory")


def memory_allocated(device: Any = None) -> int:
    """`paddle.device.xpu.memory_allocated` of 3.3."""
    raise _absent("its memory")


def memory_reserved(device: Any = None) -> int:
    """`paddle.device.xpu.memory_reserved` of 3.3."""
    raise _absent("its memory")


def reset_max_memory_allocated(device: Any = None) -> None:
    """`paddle.device.xpu.reset_max_memory_allocated` of 3.3."""
    raise _absent("its memory")


def reset_max_memory_reserved(device: Any = None) -> None:
    """`paddle.device.xpu.reset_max_memory_reserved` of 3.3."""
    raise _absent("its memory")


def _absent(what: str) -> RuntimeError:
    return RuntimeError(f"(Unavailable) Paddle is not compiled with XPU. Cannot visit {what}.")


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
