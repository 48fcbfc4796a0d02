"""What other libraries ask of a stream or of a device, for every dialect."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import sys
import zlib
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import ClosedError, InvalidHandleError, InvalidValueError, NotSupportedError, WrongDeviceError
from .._runtime import State, runtime
from . import _current
from ._base import NON_BLOCKING, Owner
from ._device import Device, device_count, in_use

if TYPE_CHECKING:
    from ._stream import S, Stream

_stream_default = _native.raw("stream_default")
_stream_done = _native.raw("stream_done")

__all__ = [
    "backend_name",
    "can_access_peer",
    "close_raw",
    "cuda_driver_loadable",
    "cuda_stream",
    "default_id",
    "device_facts",
    "device_uuid",
    "enable_peer",
    "external",
    "fact",
    "idle",
    "in_forked_child",
    "initialized",
    "new_raw",
    "open_backend",
    "require_host_memory",
]


def _backend() -> str:
    try:
        return str(_native.backend())
    except RuntimeError as exc:
        raise _native.error(exc) from None


class _Use(State):
    """How this process uses the runtime."""

    def __init__(self) -> None:
        self.name = ""  # of the backend, "" until somebody asked for it
        self.opened = False
        self.child = False  # True in a process that was forked from one that used the runtime
        # Ids of the streams that `new_raw` made and nobody has closed, by handle.
        self.raw: dict[int, int] = {}

    def reset(self) -> None:
        self.name = ""
        self.raw.clear()


_use = runtime.add("use", _Use())


def backend_name() -> str:
    """Return the name of the backend in use without asking for it each time."""
    if not _use.name:
        _use.name = _backend()
    return _use.name


@functools.cache
def cuda_driver_loadable() -> bool:
    """True if a library of this process could load a CUDA driver."""
    import ctypes  # not at import, which stays fast

    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def cuda_stream(stream: Stream) -> tuple[int, int]:
    """Return what the ``__cuda_stream__`` protocol asks for: its version and the handle.

    Raises
    ------
    NotSupportedError
        For a stream that is not CUDA's where a CUDA driver is loadable: the
        library that asked would hand the number to the driver.
    """
    name = _backend()
    if name != "cuda" and cuda_driver_loadable():
        raise NotSupportedError(
            f"this stream lives on the {name} backend, and its handle means nothing to the "
            "CUDA driver of this process; choose the cuda backend to share streams",
            operation="__cuda_stream__",
        )
    return 0, stream.handle


def from_cuda_stream(cls: type[S], source: Any, device: Device | int | str | None) -> S:
    """Return a stream in a class for an object with ``__cuda_stream__``; see `Stream`.

    Raises
    ------
    TypeError
        If the object has no ``__cuda_stream__``.
    InvalidValueError
        If its answer is no version and handle, or of an unknown version.
    InvalidHandleError
        If no live stream has the handle.
    NotSupportedError
        If it is a stream of CUDA and another backend is in use.
    """
    own = getattr(source, "_id", None)
    if own is not None and hasattr(source, "_ordinal"):
        return cls._wrap(source)
    try:
        answer = source.__cuda_stream__
    except AttributeError as exc:
        raise TypeError(
            f"a stream is a halstream Stream or an object with __cuda_stream__, not {type(source).__name__}"
        ) from (exc if hasattr(type(source), "__cuda_stream__") else None)
    if callable(answer):
        answer = answer()  # a tuple in place of the method is of an early draft
    try:
        version, handle = map(operator.index, answer)
    except (TypeError, ValueError) as exc:
        raise InvalidValueError(
            f"__cuda_stream__ of {type(source).__name__} gave {answer!r}, not a version and a handle",
            operation="from_cuda_stream",
        ) from exc
    if version != 0:
        raise InvalidValueError(
            f"__cuda_stream__ of {type(source).__name__} speaks version {version}; 0 is understood",
            operation="from_cuda_stream",
        )
    name = _backend()
    if name != "cuda" and cuda_driver_loadable():
        raise NotSupportedError(
            f"this {type(source).__name__} is a stream of the CUDA driver of this process, and "
            f"the {name} backend cannot use it; choose the cuda backend to share streams",
            operation="from_cuda_stream",
        )
    new = cls.from_handle(handle, device)
    new._foreign = source
    return new


def external(handle: int, ordinal: int) -> tuple[int, int, Owner | None]:
    """Return id, device and owner of the stream with a raw handle; the device is found from the handle.

    A stream of the runtime has no owner here: its maker closes it. A stream of another
    library stays registered with the runtime while the owner is alive, and is not
    destroyed with it.

    Parameters
    ----------
    handle : int
    ordinal : int
        The device to look at first.

    Raises
    ------
    InvalidHandleError
        If the backend knows no stream with this handle.
    """
    try:
        if backend_name() == "host":  # where a handle is an id
            return handle, int(_native.stream_device(handle)), None
        ident = _find(handle, ordinal)
        where = int(_native.stream_device(ident))
        foreign = bool(_native.stream_foreign(ident))
    except OverflowError as exc:
        raise InvalidHandleError(f"{handle} is no handle of a stream ({exc})") from None
    return ident, where, Owner(ident, external=True) if foreign else None


def _find(handle: int, first: int) -> int:
    for ordinal in (first, *(i for i in range(device_count()) if i != first)):
        with contextlib.suppress(WrongDeviceError):
            return int(_native.stream_external(ordinal, handle))
    raise InvalidHandleError(f"{handle:#x} is a stream of a device that this process does not see")


def refuse_closed(number: int) -> None:
    """Raise the error for the id of a closed stream, before a driver is asked about it as a handle: that may crash.

    Raises
    ------
    ClosedError
        If the number was the id of a stream, event or other object that is closed.
    """
    try:
        _native.stream_device(number)
    except ClosedError:
        raise
    except InvalidHandleError:
        return


def default_id(per_thread: bool) -> int:
    """Return the id of the current device's legacy, or the caller's per-thread, default stream.

    Raises
    ------
    BackendAbsentError
        If no backend can be used.
    """
    try:
        return int(_stream_default(_current.current_device(), per_thread))
    except RuntimeError as exc:
        raise _native.error(exc) from None


def idle(stream: Stream) -> bool:
    """Return True if no work is pending; an error stays for the stream's next synchronize.

    Raises
    ------
    ClosedError
        If the stream is closed.
    """
    try:
        return bool(_stream_done(stream._id))
    except RuntimeError as exc:
        raise _native.error(exc) from None


def new_raw(ordinal: int, *, priority: int = 0, non_blocking: bool = False) -> int:
    """Make a stream that belongs to no Python object; return its raw handle.

    It lives until `close_raw`. Wrap it with `Stream.from_handle`.

    Raises
    ------
    InvalidDeviceError
        If the device does not exist.
    """
    try:
        ident = _native.stream_new(ordinal, priority, NON_BLOCKING if non_blocking else 0, 0)
        handle = int(_native.stream_handle(ident))
    except RuntimeError as exc:
        raise _native.error(exc) from None
    _use.raw[handle] = ident
    return handle


def close_raw(handle: int) -> None:
    """Give up a stream of `new_raw`, or another one of the runtime; pending work still runs.

    Raises
    ------
    InvalidHandleError
        If no live stream has this handle, or another library made it.
    """
    try:
        ident = _use.raw.pop(handle, None)
        if ident is None or not _native.is_open(ident):
            if handle in (0, 1, 2):
                raise InvalidHandleError(f"{handle} is a default stream, which nobody closes", operation="close")
            ident, _, owner = external(handle, _current.current_device())
            if owner is not None:
                raise InvalidHandleError(
                    f"the stream with handle {handle:#x} was made by another library, which must close it",
                    operation="close",
                )
        _native.close(ident)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def can_access_peer(ordinal: int, peer: int) -> bool:
    """True if a device can use the other one's memory; a device is no peer of itself."""
    if ordinal == peer or _backend() == "host":
        return ordinal != peer
    return bool(_native.peer_can_access(ordinal, peer))


def enable_peer(ordinal: int, peer: int) -> None:
    """Let kernels of a device use the memory of another one; again does nothing.

    Copies between devices need no permission.

    Raises
    ------
    NotSupportedError
        If the two devices cannot.
    """
    if _backend() != "host":
        _native.peer_enable(ordinal, peer)


def fact(ordinal: int, name: str, default: str | None = None) -> str:
    """Return a property of a device; `default`, if given, where the driver does not have it.

    The names are those of `Fact` of `driver.FactDevice`: ``'uuid'``, ``'pci'``, ``'attribute:16'``.
    """
    try:
        return str(_native.device_fact(ordinal, name))
    except (NotSupportedError, InvalidValueError):  # an attribute that its driver does not know
        if default is None:
            raise
        return default


def require_host_memory(operation: str) -> None:
    """Refuse what needs devices that share all their memory with the host.

    Raises
    ------
    NotSupportedError
        On a vendor's backend.
    """
    if _backend() != "host":
        raise NotSupportedError(f"managed memory of the {_backend()} backend is not built yet", operation=operation)


def device_facts(ordinal: int) -> dict[str, Any]:
    """Return what is known about a device: its name and how it computes.

    Notes
    -----
    A host device has the compute capability of the kernels that it executes, 8.0.
    Its processors are its engines.
    """
    numbers = {"major": "major", "minor": "minor", "multi_processor_count": "processors", "warp_size": "warp"}
    found = {key: int(fact(ordinal, name)) for key, name in numbers.items()}
    return {"name": Device(ordinal).name, **found}


def device_uuid(ordinal: int) -> str:
    """Return the UUID of a device; host devices have one made of the machine's name and the ordinal."""
    if _backend() != "host":
        return fact(ordinal, "uuid")
    node = os.uname().nodename
    digits = "".join(f"{zlib.crc32(f'{part} {node} {ordinal}'.encode()):08x}" for part in range(4))
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def open_backend() -> None:
    """Count as used from now on, before any stream is made."""
    _backend()
    _use.opened = True


def initialized() -> bool:
    """True once this process has used the runtime; False in a child that was forked from it."""
    return not _use.child and (_use.opened or bool(in_use))


def in_forked_child() -> bool:
    """True in a process that was forked from one that had used the runtime."""
    return _use.child


def _forked() -> None:
    _use.child = _use.child or initialized()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
