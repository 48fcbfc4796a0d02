"""The device queries of mindspore.hal 2.10."""

from __future__ import annotations

import logging

import halstream

from .. import _core as core
from . import _target
from ._properties import AscendDeviceProperties, GpuDeviceProperties

_log = logging.getLogger("halstream.mindspore")


def _one_of(function: str, name: object) -> str:
    if not isinstance(name, str) or name not in _target.TARGETS:
        raise ValueError(
            f"For 'hal.{function}', the argument 'device_target' must be one of "
            f"{list(_target.TARGETS)}, but got {name}."
        )
    return name


def usable(function: str, name: object) -> str:
    """Return the target meant; raise as mindspore does, in its order."""
    if name is None:
        return _target.target()
    if not isinstance(name, str):
        raise TypeError(
            f"For 'hal.{function}', the type of 'device_target' must be 'str', but got '{type(name).__name__}'."
        )
    if not _target.usable(_one_of(function, name)):
        raise ValueError(
            f"For 'hal.{function}', the backend {name} is not available; hal.is_available returns which are."
        )
    return name


def _count(name: str) -> int:
    # Beside a device the process has one CPU; where the host is the device, all it shows.
    return 1 if name == "CPU" != _target.target() else core.device_count()


def _device(function: str, device_id: object, name: object) -> tuple[core.Device, str]:
    where = usable(function, name)
    count = _count(where)
    if not isinstance(device_id, int):
        raise TypeError(
            f"For 'hal.{function}', the type of 'device_id' must be 'int', but got '{type(device_id).__name__}'."
        )
    if device_id < 0:
        raise ValueError(f"For 'hal.{function}', the argument 'device_id' must not be negative, but got {device_id}.")
    if device_id >= count:
        raise ValueError(
            f"For 'hal.{function}', the argument 'device_id' must be less than the device count "
            f"{count}, but got {device_id}."
        )
    return core.Device(int(device_id)), where


def _absent(function: str, name: str) -> None:
    _log.warning("'%s' for %s is not implemented. Return None.", function, name)


def is_initialized(device_target: str) -> bool:
    """`mindspore.hal.is_initialized` of 2.10."""
    return _target.initialized(_one_of("is_initialized", device_target))


def is_available(device_target: str) -> bool:
    """`mindspore.hal.is_available` of 2.10; the host device stands in for each target."""
    name = _one_of("is_available", device_target)
    if _target.usable(name):
        return True
    _log.warning("Backend %s is not available: %s is in use.", name, halstream.backend())
    return False


def device_count(device_target: str | None = None) -> int:
    """`mindspore.hal.device_count` of 2.10; 2 for the host device, where mindspore has 1."""
    return _count(usable("device_count", device_target))


def count_of(name: str) -> int:
    """`mindspore.device_context.<target>.device_count` of 2.10; RuntimeError if unavailable."""
    if not _target.usable(name):
        raise RuntimeError(f"The device {name} does not exist here.")
    return _count(name)


def get_device_capability(device_id: int, device_target: str | None = None) -> tuple[int, int] | None:
    """`mindspore.hal.get_device_capability` of 2.10; (8, 0) for the host device as a GPU."""
    device, name = _device("get_device_capability", device_id, device_target)
    if name == "GPU":
        figures = GpuDeviceProperties(device)
        return figures.major, figures.minor
    _absent("get_device_capability", name)
    return None


def get_device_properties(
    device_id: int, device_target: str | None = None
) -> GpuDeviceProperties | AscendDeviceProperties | None:
    """`mindspore.hal.get_device_properties` of 2.10; the machine's figures on the host device."""
    device, name = _device("get_device_properties", device_id, device_target)
    if name == "GPU":
        return GpuDeviceProperties(device)
    if name == "Ascend":
        return AscendDeviceProperties(device, _target.initialized(name))
    _absent("get_device_properties", name)
    return None


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """`mindspore.hal.get_device_name` of 2.10."""
    device, name = _device("get_device_name", device_id, device_target)
    return "CPU" if name == "CPU" else device.name


def get_arch_list(device_target: str | None = None) -> str | None:
    """`mindspore.hal.get_arch_list` of 2.10; empty for the host device as a GPU."""
    name = usable("get_arch_list", device_target)
    if name == "GPU":
        return ""
    _absent("get_arch_list", name)
    return None
