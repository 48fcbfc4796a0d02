"""halstream: real device streams for every program, with or without a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native
from ._core import Device, Event, Stream, _current, device_count, synchronize
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
    from ._checks.sanitize import UnorderedAccessWarning, host_access, sanitize
    from ._kernel import Kernel
    from ._memory._array import Array, asarray, empty, pinned_empty, zeros
    from ._memory._borrow import from_dlpack

__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "Array",
    "BackendAbsentError",
    "CallInHostFunctionError",
    "CaptureError",
    "ClosedError",
    "CompileError",
    "Device",
    "DeviceLostError",
    "Event",
    "ForkError",
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
    "asarray",
    "backend",
    "current_device",
    "current_stream",
    "device_count",
    "devices",
    "empty",
    "from_dlpack",
    "host_access",
    "pinned_empty",
    "sanitize",
    "set_device",
    "synchronize",
    "testing",
    "use",
    "use_backend",
    "zeros",
]


def backend() -> str:
    """Return the name of the backend in use: ``'host'``, ``'cuda'`` or ``'ascend'``."""
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
    BackendAbsentError
        If it cannot be used here; the text says why.
    InvalidValueError
        If a stream, an event or a block of memory is alive.
    NotReadyError
        If work is pending.
    """
    from ._core._backend import change

    change(name)
    return backend()


def devices() -> list[Device]:
    """Return all devices of the backend in use."""
    return [Device(i) for i in range(device_count())]


def current_device() -> Device:
    """Return the calling task's current device."""
    return Device(_current.current_device())


def set_device(device: Device | int | str) -> None:
    """Change the current device of this thread, or of the innermost context."""
    from ._core._device import ordinal

    _current.set_device(ordinal(device))


def current_stream(device: Device | int | str | None = None) -> Any:
    """Return the current stream of a device (None: the current device).

    The object is the very one that was made current; without one it is the
    legacy default stream.
    """
    from ._core._device import ordinal

    where = ordinal(device)
    stream = _current.current_stream(where)
    return Stream._default(where) if stream is None else stream


def use(stream: Stream) -> None:
    """Make a stream current for this thread, or for the rest of the innermost context."""
    if not isinstance(stream, Stream):
        stream = Stream.from_cuda_stream(stream)
    _current.set_stream(stream)


def __getattr__(name: str) -> Any:
    # Imported on first use: an import of halstream stays fast.
    if name in {"Array", "asarray", "empty", "pinned_empty", "zeros"}:
        from ._memory import _array  # loads NumPy

        return getattr(_array, name)
    if name == "from_dlpack":
        from ._memory._borrow import from_dlpack

        return from_dlpack
    if name in {"UnorderedAccessWarning", "host_access", "sanitize"}:
        from ._checks import sanitize as _sanitize

        return getattr(_sanitize, name)
    if name == "Kernel":
        from ._kernel import Kernel

        return Kernel
    if name in {"testing", "torch", "paddle", "mindspore", "cupy", "acl"}:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
