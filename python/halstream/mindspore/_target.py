"""Device targets of mindspore 2.10: the target name of this process's devices."""

from __future__ import annotations

from typing import NamedTuple

import halstream

from .._core import _current
from .._core._device import in_use

TARGETS = ("CPU", "GPU", "Ascend")
_OF_BACKEND = {"host": "CPU", "cuda": "GPU", "ascend": "Ascend"}


def target() -> str:
    """Return the target in force: the chosen one, else the name of the backend's devices."""
    chosen = _current.process_device()[1]
    return chosen if chosen in TARGETS else _of_backend()


def _of_backend() -> str:
    """Return mindspore's name for the devices of the backend."""
    backend = halstream.backend()
    if backend not in _OF_BACKEND:
        raise RuntimeError(
            f"mindspore has no device target for the devices of the {backend!r} backend; choose 'host', 'cuda' or "
            "'ascend' with halstream.use_backend"
        )
    return _OF_BACKEND[backend]


def usable(name: str) -> bool:
    """Return True if this process may make streams on a target.

    The host backend accepts each of the three names until one is chosen;
    from then on it is like a build of mindspore for that target.
    """
    if name in ("CPU", target()):
        return True
    return halstream.backend() == "host" and _current.process_device()[1] not in TARGETS


def initialized(name: str) -> bool:
    """Return True once a stream of the target was made or looked up."""
    return name == target() and bool(in_use)


def choose(name: str, device_id: int, caller: str) -> None:
    """Make a target and a device the process's, before the first stream."""
    if (name, device_id) == (target(), _current.current_device()):
        _current.set_process_device(device_id, name)
        return
    if in_use:
        raise RuntimeError(
            f"For '{caller}', the runtime is already initialized on {target()} device "
            f"{_current.current_device()}; choose the device before the first stream is made"
        )
    if halstream.backend() != "host" and name != _of_backend():
        raise RuntimeError(
            f"For '{caller}', '{name}' is not available on the {halstream.backend()!r} backend; "
            "choose another one with halstream.use_backend"
        )
    _current.set_process_device(device_id, name)


def check_device(name: object, device_id: object, caller: str) -> None:
    """Raise mindspore's errors for a target and an id of wrong types or values."""
    if not isinstance(name, str) and name is not None:
        raise TypeError(f"For '{caller}', the type of 'device_target' must be 'str', but got '{type(name).__name__}'.")
    if device_id is not None and (isinstance(device_id, bool) or not isinstance(device_id, int)):
        raise TypeError(f"For '{caller}', the type of 'device_id' must be 'int', but got '{type(device_id).__name__}'.")
    if name not in TARGETS:
        raise ValueError(
            f"For '{caller}', the argument 'device_target' must be one of {list(TARGETS)}, but got {name}."
        )
    if device_id is not None and device_id < 0:
        raise ValueError(f"For '{caller}', the argument 'device_id' must not be negative, but got {device_id}.")


class DeviceInfo(NamedTuple):
    """What `get_current_device` returns."""

    device_target: str
    device_id: int


def set_device(device_target: str, device_id: int | None = None) -> None:
    """`mindspore.set_device` of 2.10; an id that no device has fails at the first stream."""
    check_device(device_target, device_id, "set_device")
    wanted = (device_target, device_id or 0)
    chosen = _current.process_device()
    if chosen[1] in TARGETS and wanted != (chosen[1], chosen[0]):
        raise RuntimeError(
            f"For 'set_device', the device is already set to {chosen[1]} {chosen[0]} and cannot "
            f"be set to {wanted[0]} {wanted[1]}; call it once, at the start of the program"
        )
    choose(*wanted, "set_device")


def get_current_device() -> DeviceInfo:
    """`mindspore.get_current_device` of 2.10."""
    return DeviceInfo(target(), _current.current_device())
