"""cupy.cuda (cupy 14.2.0): streams, events, devices; memory and kernels are not built yet."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from ..._errors import HalError
from . import device, driver, graph, nvtx, profiler, runtime, stream
from .device import Device, get_device_id
from .graph import Graph
from .stream import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time

__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "Graph",
    "Stream",
    "device",
    "driver",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "get_local_runtime_version",
    "graph",
    "is_available",
    "nvtx",
    "profile",
    "profiler",
    "runtime",
    "stream",
]


def is_available() -> bool:
    """cupy.cuda.is_available (14.2.0): True with host devices, too."""
    try:
        return runtime.getDeviceCount() > 0
    except HalError:
        return False


def get_local_runtime_version() -> int:
    """cupy.cuda.get_local_runtime_version (14.2.0): as ``runtime.runtimeGetVersion()``."""
    return runtime.runtimeGetVersion()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """cupy.cuda.profile (14.2.0); deprecated there in favour of ``cupyx.profiler.profile``."""
    warnings.warn(
        "cupy.cuda.profile is deprecated. Use cupyx.profiler.profile instead.", stacklevel=3
    )
    profiler.start()
    try:
        yield
    finally:
        profiler.stop()
