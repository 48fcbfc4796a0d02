"""What a GPU measures of itself: torch.cuda's functions for that, and NVIDIA's library for the management of devices.

The host device has no sensors. Programs ask for these figures to show them, or to find out whether there are devices:
they get the same ones each time, and those of the memory as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from ..._core._device import Device, device_count
from .patches import Patches
from .properties import capability, identity

__all__ = ["changes", "patch"]

_PERCENT = 0
_CELSIUS = 40
_MILLIWATTS = 60_000
_MILLIWATTS_MOST = 300_000
_MEGAHERTZ = 1000
#: What the management library says of itself.
_DRIVER = "580.0"


def patch(torch: Any, patches: Patches) -> None:
    """Replace the functions of torch.cuda."""
    cuda = torch.cuda

    def index(device: Any) -> int:
        return int(cuda._utils._get_device_index(device, optional=True))

    def constant(value: int) -> Callable[..., int]:
        def figure(device: Any = None) -> int:
            index(device)  # of a device that there is not, as for a GPU
            return value

        return figure

    def used(device: Any = None) -> int:
        free, total = cuda.mem_get_info(index(device))
        return int(total - free)

    names = {
        "utilization": constant(_PERCENT), "memory_usage": constant(_PERCENT), "temperature": constant(_CELSIUS),
        "power_draw": constant(_MILLIWATTS), "clock_rate": constant(_MEGAHERTZ), "device_memory_used": used,
    }  # fmt: skip
    for name, value in names.items():
        patches.set(cuda, name, functools.wraps(getattr(cuda, name))(value))
    processes = functools.wraps(cuda.list_gpu_processes)(lambda device=None: f"GPU:{index(device)}\n{_NO_PROCESSES}")
    for owner in (cuda, cuda.memory):
        patches.set(owner, "list_gpu_processes", processes)


_NO_PROCESSES = "no processes are running"


def changes(torch: Any, module: Any, patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do with the management library's module once it is imported."""

    def management(nvml: ModuleType) -> None:
        given = _functions(torch, module, nvml)
        for name, value in list(vars(nvml).items()):
            if name.startswith("nvml") and callable(value) and not isinstance(value, type):
                patches.set(nvml, name, given.get(name) or _not_supported(nvml, name))

    return {"pynvml": management, "vllm.third_party.pynvml": management}  # a copy of it


def _not_supported(nvml: ModuleType, name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)

    refuse.__name__ = name
    return refuse


def _functions(torch: Any, module: Any, nvml: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return the functions that say something of a device; it is given by its ordinal."""

    def known(ordinal: int) -> int:
        if not 0 <= ordinal < device_count():
            raise nvml.NVMLError(nvml.NVML_ERROR_INVALID_ARGUMENT)
        return ordinal

    def by_uuid(uuid: Any) -> int:
        text = uuid.decode() if isinstance(uuid, bytes) else uuid
        for ordinal in range(device_count()):
            if f"GPU-{identity(ordinal)}" == text:
                return ordinal
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_FOUND)

    def memory(handle: int, version: Any = None) -> Any:
        free, total = module.mem_get_info(known(handle))
        return SimpleNamespace(total=total, free=free, used=total - free)

    def name(handle: int) -> str:
        return Device(known(handle)).name

    return {
        "nvmlInit": lambda: None, "nvmlInitWithFlags": lambda flags: None, "nvmlShutdown": lambda: None,
        "nvmlErrorString": nvml.nvmlErrorString,
        "nvmlSystemGetDriverVersion": lambda: _DRIVER, "nvmlSystemGetNVMLVersion": lambda: _DRIVER,
        "nvmlSystemGetCudaDriverVersion": lambda: int(torch._C._cuda_getCompiledVersion()),
        "nvmlSystemGetCudaDriverVersion_v2": lambda: int(torch._C._cuda_getCompiledVersion()),
        "nvmlDeviceGetCount": device_count, "nvmlDeviceGetHandleByIndex": known, "nvmlDeviceGetIndex": known,
        "nvmlDeviceGetHandleByUUID": by_uuid, "nvmlDeviceGetName": name, "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{identity(known(handle))}",
        "nvmlDeviceGetCudaComputeCapability": lambda handle: capability(),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=_PERCENT, memory=_PERCENT),
        "nvmlDeviceGetTemperature": lambda handle, sensor: _CELSIUS,
        "nvmlDeviceGetPowerUsage": lambda handle: _MILLIWATTS,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: _MILLIWATTS_MOST,
        "nvmlDeviceGetPowerManagementLimit": lambda handle: _MILLIWATTS_MOST,
        "nvmlDeviceGetClockInfo": lambda handle, kind: _MEGAHERTZ,
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: _MEGAHERTZ,
        "nvmlDeviceGetFanSpeed": lambda handle: 0,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [],
        "nvmlDeviceGetGraphicsRunningProcesses": lambda handle: [],
        "nvmlDeviceGetP2PStatus": lambda handle, other, kind: nvml.NVML_P2P_STATUS_OK,
        "nvmlDeviceGetPersistenceMode": lambda handle: nvml.NVML_FEATURE_DISABLED,
        "nvmlDeviceGetComputeMode": lambda handle: nvml.NVML_COMPUTEMODE_DEFAULT,
    }  # fmt: skip
