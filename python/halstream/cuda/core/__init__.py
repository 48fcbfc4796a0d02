"""cuda.core (1.2.2), over any device of the runtime.

``from halstream.cuda import core`` stands for ``from cuda import core``. Names of the package that are
not built yet raise when they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._dialects._not_built import not_built
from ._buffer import Buffer, MemoryResource
from ._context import Context
from ._device import Device
from ._event import Event, EventOptions
from ._launch_config import LaunchConfig
from ._launcher import launch
from ._module import Kernel, ObjectCode
from ._program import Program, ProgramOptions
from ._resources import (
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
)
from ._stream import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream, StreamOptions

from . import graph, typing  # isort: skip  # the graphs are made of what stands above

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "Buffer",
    "Context",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "Event",
    "EventOptions",
    "GraphMemoryResource",
    "Kernel",
    "LaunchConfig",
    "LegacyPinnedMemoryResource",
    "MemoryResource",
    "ObjectCode",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "Program",
    "ProgramOptions",
    "Stream",
    "StreamOptions",
    "graph",
    "launch",
    "typing",
]

__version__ = "1.2.2"

__getattr__: Callable[[str], Any] = not_built(__name__)
