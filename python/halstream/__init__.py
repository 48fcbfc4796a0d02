"""halstream: real device streams for every program, with or without a device.

The names here are the core's. Each dialect is a package of its own, imported by
its name: `halstream.torch`, `paddle`, `mindspore`, `cupy`, `cupyx` and `acl`.
What programs use to test themselves is in `halstream.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native
from ._core import Device, Event, Stream, _current, device_count, ordinal, synchronize
from ._core._backend import change as _change_backend
from ._core._strict import strict as _strict_mode
from ._errors import (
    AbortedError,
    BackendAbsentError,
    CallInHostFunctionError,
    CaptureError,
    ClosedError,
    CompileError,
    DeviceLostError,
    ForkError,
    HalError,
    HostFunctionError,
    InvalidDeviceError,
    InvalidHandleError,
    InvalidValueError,
    KernelArgumentError,
    NoContextError,
    NondeterminismError,
    NotReadyError,
    NotSubscribedError,
    NotSupportedError,
    OutOfMemoryError,
    ScheduleError,
    StallError,
    TimingDisabledError,
    UnorderedAccessError,
    UnrecordedError,
    WaitTimeoutError,
    WrongContextError,
    WrongDeviceError,
)

if TYPE_CHECKING:
    from . import testing
    from ._capi import get_api, get_include
    from ._checks.sanitize import UnorderedAccessWarning, host_access, sanitize
    from ._checks.shared import shared
    from ._core._capture import capture
    from ._core._declared import accesses
    from ._core._graph import Graph, GraphExec
    from ._kernel import Kernel
    from ._memory._array import Array, asarray, empty, pinned_empty, zeros
    from ._memory._borrow import from_dlpack
    from ._memory._condition import Condition

__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "Array",
    "BackendAbsentError",
    "CallInHostFunctionError",
    "CaptureError",
    "ClosedError",
    "CompileError",
    "Condition",
    "Device",
    "DeviceLostError",
    "Event",
    "ForkError",
    "Graph",
    "GraphExec",
    "HalError",
    "HostFunctionError",
    "InvalidDeviceError",
    "InvalidHandleError",
    "InvalidValueError",
    "Kernel",
    "KernelArgumentError",
    "NoContextError",
    "NondeterminismError",
    "NotReadyError",
    "NotSubscribedError",
    "NotSupportedError",
    "OutOfMemoryError",
    "ScheduleError",
    "StallError",
    "Stream",
    "TimingDisabledError",
    "UnorderedAccessError",
    "UnorderedAccessWarning",
    "UnrecordedError",
    "WaitTimeoutError",
    "WrongContextError",
    "WrongDeviceError",
    "__version__",
    "accesses",
    "asarray",
    "backend",
    "capture",
    "current_device",
    "current_stream",
    "device_count",
    "devices",
    "empty",
    "from_dlpack",
    "get_api",
    "get_include",
    "host_access",
    "pinned_empty",
    "sanitize",
    "set_device",
    "shared",
    "strict",
    "synchronize",
    "testing",
    "use",
    "use_backend",
    "zeros",
]


def backend() -> str:
    """Return the name of the backend in use: ``'host'``, ``'cuda'`` or ``'ascend'``.

    Raises
    ------
    BackendAbsentError
        If no backend can be used.
    """
    try:
        return str(_native.backend())
    except RuntimeError as exc:
        raise _native.error(exc) from None


def use_backend(name: str) -> str:
    """Choose the backend; possible while no stream, event or block of memory is alive.

    A call that is refused changes nothing. What tasks and threads made current
    is forgotten in all of them when the backend changes.

    Parameters
    ----------
    name : str
        ``'auto'``, ``'host'``, ``'cuda'`` or ``'ascend'``.

    Returns
    -------
    str
        The backend in use, which is never ``'auto'``.

    Raises
    ------
    TypeError
        If `name` is no str.
    BackendAbsentError
        If it cannot be used here; the text says why.
    InvalidValueError
        If a stream, an event or a block of memory is alive.
    NotReadyError
        If work is pending.
    """
    if not isinstance(name, str):
        raise TypeError(f"use_backend() takes the name of a backend, not {type(name).__name__}")
    _change_backend(name)
    return backend()


def strict(on: bool = True) -> None:
    """Turn strict mode on or off: dialects show only what the packages have that they mirror.

    What their classes inherit from the core, `call` or `launch` for instance,
    and what their modules have beyond the mirrored ones, `acl.constants` for
    instance, then raises AttributeError, and guards of paddle and mindspore make a stream
    current for the whole process. A program that passes in this mode uses
    nothing that the mirrored package lacks. The environment variable
    ``HALSTREAM_STRICT=1`` turns it on from the start.

    Parameters
    ----------
    on : bool
    """
    from ._dialects import _strict

    _strict.turn(bool(on))


def devices() -> list[Device]:
    """Return all devices of the backend in use.

    Raises
    ------
    BackendAbsentError
        If no backend can be used.
    """
    return [Device(i) for i in range(device_count())]


def current_device() -> Device:
    """Return the calling task's current device."""
    return Device(_current.current_device())


def set_device(device: Device | int | str) -> None:
    """Change the current device of this task or thread, or of the innermost context.

    Parameters
    ----------
    device : Device, int or str

    Raises
    ------
    InvalidDeviceError
        If the device does not exist.
    TypeError
        If `device` is of another type.
    """
    _current.set_device(ordinal(device))


def current_stream(device: Device | int | str | None = None) -> Stream:
    """Return the current stream of a device.

    Parameters
    ----------
    device : Device, int, str or None
        None is the current device.

    Returns
    -------
    Stream
        The very object that was made current, which may be a dialect's; where
        nothing was, the device's legacy default stream, which
        `Device.default_stream` gives, too.

    Raises
    ------
    InvalidDeviceError
        If the device does not exist.
    """
    where = ordinal(device)
    stream = _current.current_stream(where)
    return Stream._default(where) if stream is None else stream


def use(stream: Stream) -> None:
    """Make a stream current for this task or thread, or for the rest of the innermost context.

    ``with stream:`` is the way to do so for a block.

    Parameters
    ----------
    stream : Stream
        Or an object of another library with ``__cuda_stream__``.

    Raises
    ------
    TypeError
        If it is neither.
    InvalidHandleError
        If no live stream has the handle of that object.
    """
    if not isinstance(stream, Stream):
        stream = Stream.from_cuda_stream(stream)
    _current.set_stream(stream)


def _judge_wait() -> int:
    """Load the stall report, at the first wait that takes long, and ask it; see `_stalls.stall.asked`."""
    from ._stalls.stall import asked

    _native.judge_wait = asked
    return asked()


_native.judge_wait = _judge_wait


def _judge_loop(line: object) -> None:
    """Do the same for an event loop whose tasks look again and again; see `_stalls.stall.ask_for_loop`."""
    from ._stalls.stall import ask_for_loop

    _native.judge_loop = ask_for_loop
    ask_for_loop(line)


_native.judge_loop = _judge_loop

#: Names that are imported at their first use, so that an import of halstream stays fast.
_LAZY = {
    "Array": "_memory._array",  # loads NumPy
    "asarray": "_memory._array",
    "empty": "_memory._array",
    "pinned_empty": "_memory._array",
    "zeros": "_memory._array",
    "from_dlpack": "_memory._borrow",
    "Condition": "_memory._condition",
    "UnorderedAccessWarning": "_checks.sanitize",
    "host_access": "_checks.sanitize",
    "sanitize": "_checks.sanitize",
    "Kernel": "_kernel",
    "accesses": "_core._declared",
    "Graph": "_core._graph",  # loads dataclasses, and so inspect
    "GraphExec": "_core._graph",
    "capture": "_core._capture",
    "shared": "_checks.shared",
    "get_api": "_capi",
    "get_include": "_capi",
    "testing": "",
    "torch": "",
    "paddle": "",
    "mindspore": "",
    "cuda": "",
    "cupy": "",
    "cupyx": "",
    "acl": "",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"{__name__}.{_LAZY[name] or name}")
    value = getattr(module, name) if _LAZY[name] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if _strict_mode.enabled:
    strict()
