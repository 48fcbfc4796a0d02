"""Queries of paddle.device about builds and devices."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from ... import _core as core
from ..._core._interop import device_facts
from ..._dialects._adapt import raising
from ..._memory import memory_info
from .._errors import ERRORS
from .._names import device_to_paddle, expected_place, extract_device_id
from .._place import Place
from .._places import custom_types, is_custom
from ..base.core import get_all_custom_device_type as get_all_custom_device_type
from ..base.core import is_compiled_with_cuda as is_compiled_with_cuda
from ..base.core import is_compiled_with_custom_device as is_compiled_with_custom_device
from ..base.core import is_compiled_with_rocm as is_compiled_with_rocm
from ..base.core import is_compiled_with_xpu as is_compiled_with_xpu

# The types that 3.3 knows to be custom devices, registered or not.
_CUSTOM_MODULES = (
    "metax_gpu",
    "biren_gpu",
    "custom_cpu",
    "gcu",
    "iluvatar_gpu",
    "intel_gpu",
    "intel_hpu",
    "mlu",
    "mps",
    "npu",
    "sdaa",
)


class DeviceProperties(NamedTuple):
    """What `get_device_properties` of 3.3 returns."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int

    def __repr__(self) -> str:
        return (
            f"_gpuDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


def get_cudnn_version() -> int | None:
    """`paddle.get_cudnn_version` of 3.3: there is none."""
    return None


def is_compiled_with_ipu() -> bool:
    """`paddle.is_compiled_with_ipu` of 3.3: False."""
    return False


def is_compiled_with_cinn() -> bool:
    """`paddle.is_compiled_with_cinn` of 3.3: False."""
    return False


def is_compiled_with_distribute() -> bool:
    """`paddle.is_compiled_with_distribute` of 3.3: False."""
    return False


def get_all_device_type() -> list[str]:
    """`paddle.device.get_all_device_type` of 3.3: the GPUs and the custom types."""
    return ["gpu", *custom_types()]


@raising(ERRORS)
def get_available_device() -> list[str]:
    """`paddle.device.get_available_device` of 3.3; a type with one device stands alone."""
    return [name for kind in get_all_device_type() for name in _devices(kind)]


@raising(ERRORS)
def get_available_custom_device() -> list[str]:
    """`paddle.device.get_available_custom_device` of 3.3; a type with one device stands alone."""
    return [name for kind in custom_types() for name in _devices(kind)]


def _devices(kind: str) -> list[str]:
    count = core.device_count()
    return [kind] if count == 1 else [f"{kind}:{i}" for i in range(count)]


@raising(ERRORS)
def device_count(device_type: str | None = None) -> int:
    """`paddle.device.device_count` of 3.3, with the custom type that builds for those take."""
    if device_type is None or device_type == "gpu":
        return core.device_count()
    if device_type in ("cpu", "xpu"):
        return 0
    if not isinstance(device_type, str) or not is_custom(device_type):
        names = ", ".join(repr(name) for name in get_all_device_type())
        raise ValueError(f"device_type must be one of {names}, but got {device_type!r}")
    return core.device_count()


def is_available() -> bool:
    """`paddle.device.is_available` of 3.3."""
    return device_count() >= 1


@raising(ERRORS)
def get_device_properties(device: Any = None) -> DeviceProperties:
    """`paddle.device.get_device_properties` of 3.3; also for custom types.

    On the host device the processors are the engines; its compute capability
    is 8.0.
    """
    ordinal = extract_device_id(device_to_paddle(device), "paddle.device.cuda.get_device_properties")
    facts = device_facts(ordinal)
    return DeviceProperties(
        facts["name"],
        facts["major"],
        facts["minor"],
        memory_info(ordinal)[1],
        facts["multi_processor_count"],
    )


def get_device_name(device: Any = None) -> str:
    """`paddle.device.get_device_name` of 3.3."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """`paddle.device.get_device_capability` of 3.3; (8, 0) on the host device."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_device_module(device: Any = None) -> ModuleType | None:
    """`paddle.device.get_device_module` of 3.3; None for what names no device."""
    root = __name__.split(".device.")[0]
    if device is None:
        device = device_to_paddle()
    if isinstance(device, Place):
        if device.is_cpu_place():
            return import_module(f"{root}.device")
        device = str(device)[6:-1]
    if not isinstance(device, str):
        return None
    kind = device.lower().partition(":")[0]
    if kind in ("gpu", "cuda"):
        return import_module(f"{root}.cuda")
    if kind in ("cpu", "xpu"):
        return import_module(f"{root}.device.{kind}")
    if kind in _CUSTOM_MODULES:
        return import_module(f"{root}.device.custom_device")
    raise RuntimeError(f"Unsupported device type: {kind}")


def current_device() -> int:
    """`paddle.device.current_device` of 3.3; 0 on the CPU."""
    return int(expected_place()._index)
