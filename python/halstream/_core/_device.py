"""Device: ordinals, names, and waiting for a whole device."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _native
from .._errors import KINDS, WaitTimeoutError
from .._runtime import State, runtime
from . import _current
from ._base import drain, repr_after_fork
from ._strict import strict

if TYPE_CHECKING:
    from ._stream import Stream


class _InUse(State):
    def __init__(self) -> None:
        self.ordinals: set[int] = set()

    def reset(self) -> None:
        self.ordinals.clear()


#: Ordinals of the devices on which a stream was made or named.
in_use = runtime.add("devices in use", _InUse()).ordinals


class Device:
    """A device of the chosen backend.

    Parameters
    ----------
    ordinal : Device, int, str or None
        0-based; None is the current device; names like ``'host:1'`` or
        ``'cuda:1'`` mean that device of the backend in use.

    Raises
    ------
    InvalidDeviceError
        If the backend has no such device, or the name is none.
    TypeError
        If `ordinal` is of another type.

    Examples
    --------
    >>> import halstream as hs
    >>> with hs.Device(1):
    ...     hs.Stream().device == hs.Device(1)
    True
    """

    __slots__ = ("_ordinal",)
    _stream_class: ClassVar[type[Stream]]  # set by _stream.py, which imports this file

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        strict.add(cls)

    def __init__(self, ordinal_: Device | int | str | None = None) -> None:
        self._ordinal: int = ordinal(ordinal_)

    @property
    def ordinal(self) -> int:
        """Number of the device, 0-based."""
        return self._ordinal

    @property
    def name(self) -> str:
        """Name of the hardware."""
        return str(_native.device_name(self.ordinal))

    @property
    def priority_range(self) -> tuple[int, int]:
        """Least and greatest stream priority: (0, -7) on the host, often (0, -5) on CUDA."""
        return 0, int(_native.device_greatest_priority(self.ordinal))

    @property
    def default_stream(self) -> Stream:
        """The legacy default stream."""
        return self._stream_class._default(self.ordinal)

    @property
    def per_thread_stream(self) -> Stream:
        """The calling thread's default stream."""
        stream = self._stream_class.__new__(self._stream_class)
        stream._attach(_native.stream_own(self.ordinal), self.ordinal)
        return stream

    def synchronize(self, timeout: float | None = None) -> None:
        """Block until all work enqueued on the device before the call is done.

        Parameters
        ----------
        timeout : float or None
            Seconds; None waits for ever.

        Raises
        ------
        WaitTimeoutError
            When the limit comes first.
        """
        synchronize(self.ordinal, timeout)

    def __enter__(self) -> Device:
        _current.enter_device(self.ordinal)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _current.leave(device=self.ordinal)

    def __index__(self) -> int:
        return self.ordinal

    def __eq__(self, other: object) -> bool:
        return self.ordinal == other.ordinal if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash((Device, self.ordinal))

    @repr_after_fork
    def __repr__(self) -> str:
        return f"<halstream.Device {_native.backend()}:{self.ordinal}>"


def ordinal(device: Device | int | str | None) -> int:
    """Return the checked ordinal of a device given in any form.

    Raises
    ------
    InvalidDeviceError
        If the backend has no such device, or the name is none.
    TypeError
        If `device` is of another type.
    """
    if device is None:
        return _current.current_device()
    if isinstance(device, str):
        name, _, number = device.partition(":")
        if name not in _NAMES or not (number.isdecimal() or number == "") or device[-1:] == ":":
            raise KINDS["invalid_device"](f"no device is called {device!r}; say for example 'host:0' or 'cuda:1'")
        value = int(number) if number else _current.current_device()
    elif isinstance(device, bool):
        raise TypeError("a device is an int, a name or a Device, not a bool")
    else:
        try:
            value = operator.index(device)
        except TypeError:
            raise TypeError(f"a device is an int, a name or a Device, not {type(device).__name__}") from None
    count = device_count()
    if not 0 <= value < count:
        raise KINDS["invalid_device"](
            f"device {value} does not exist: the {_native.backend()} backend has {count} device(s), numbered from 0"
        )
    return value


_NAMES = frozenset({"host", "cpu", "cuda", "gpu", "npu", "ascend", "custom_cpu"})


def device_count() -> int:
    """Return the number of devices of the backend in use.

    Raises
    ------
    BackendAbsentError
        If no backend can be used; the text says why.
    """
    try:
        return int(_native.device_count())
    except RuntimeError as exc:
        raise _native.error(exc) from None


def synchronize(device: Device | int | str | None = None, timeout: float | None = None) -> None:
    """Block until all work enqueued on a device before the call is done.

    Parameters
    ----------
    device : Device, int, str or None
        None is the current device.
    timeout : float or None
        Seconds; None waits for ever.

    Raises
    ------
    WaitTimeoutError
        When the limit comes first; the text names a stream that is pending.
    InvalidDeviceError
        If the device does not exist.
    """
    where = ordinal(device)
    drain()
    try:
        if not _native.wait(_native.device_sync, where, timeout):
            state = _native.device_describe(where)
            raise WaitTimeoutError(f"not done within {timeout} s: {state}", operation="synchronize device")
    except RuntimeError as exc:
        raise _native.error(exc) from None
