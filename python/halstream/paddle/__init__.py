"""paddle of 3.3: its streams, events, places and device choice.

Tensors, random numbers and graphs are not here.
"""

from . import base, cuda, device, framework
from .device import (
    Event,
    Stream,
    device_guard,
    get_cudnn_version,
    get_default_device,
    get_device,
    get_device_module,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_custom_device,
    is_compiled_with_distribute,
    is_compiled_with_ipu,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
    set_default_device,
    set_device,
)
from .places import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    CustomPlace,
    IPUPlace,
    XPUPinnedPlace,
    XPUPlace,
)

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CustomPlace",
    "Event",
    "IPUPlace",
    "Stream",
    "XPUPinnedPlace",
    "XPUPlace",
    "base",
    "cuda",
    "device",
    "device_guard",
    "framework",
    "get_cudnn_version",
    "get_default_device",
    "get_device",
    "get_device_module",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_custom_device",
    "is_compiled_with_distribute",
    "is_compiled_with_ipu",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "set_default_device",
    "set_device",
]
