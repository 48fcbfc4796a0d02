"""The stream and event layer of torch (2.15) over the runtime.

A program that says ``from halstream.torch import cuda`` finds what
``torch.cuda`` offers for streams, events and devices. Device type ``'cuda'``
means the backend in use, whichever it is; see `halstream.backend`.

`redirect` is another thing: it lets the real torch run its CUDA programs on
halstream's host device.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from .. import _core as _core  # first: it waits for a thread that is importing the package
from . import _C as _C
from . import accelerator, cpu, cuda, version
from ._device import device
from ._device import device as _Device
from ._errors import AcceleratorError, OutOfMemoryError
from ._errors import not_built as _not_built
from ._events import Event
from ._redirect.comparison import compare_compiled
from ._redirect.errors import RedirectError
from ._redirect.redirection import Redirection, redirect, register_kernel
from ._streams import Stream

__all__ = [
    "AcceleratorError",
    "Event",
    "OutOfMemoryError",
    "RedirectError",
    "Redirection",
    "Stream",
    "accelerator",
    "compare_compiled",
    "cpu",
    "cuda",
    "device",
    "get_device_module",
    "redirect",
    "register_kernel",
    "version",
]

__version__ = version.__version__


def get_device_module(device: Any = None) -> ModuleType:
    """torch.get_device_module (2.15): `cuda` (also without an argument) or `cpu`."""
    name = "cuda" if device is None else _Device(device).type
    if name == "cuda":
        return cuda
    if name == "cpu":
        return cpu
    raise RuntimeError(f"torch has no module of '{name}' on this runtime")


__getattr__: Callable[[str], Any] = _not_built(__name__)
