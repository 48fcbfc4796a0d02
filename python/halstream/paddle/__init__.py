"""paddle of 3.3: its streams, events, places, device choice, and the tensors of stream programs."""

from typing import TYPE_CHECKING

from .. import _core as _core  # first: it waits for a thread that is importing the package
from .._dialects._not_built import not_built
from . import base, cuda, device, framework
from ._dtype import TYPES, dtype, get_default_dtype, set_default_dtype
from ._functions import *  # noqa: F403
from ._functions import __all__ as _functions
from ._places import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    CustomPlace,
    IPUPlace,
    XPUPinnedPlace,
    XPUPlace,
)
from ._tensor import Tensor
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

#: The release that is mirrored.
__version__ = "3.3.1"

uint8: dtype = TYPES["uint8"]
int8: dtype = TYPES["int8"]
int16: dtype = TYPES["int16"]
int32: dtype = TYPES["int32"]
int64: dtype = TYPES["int64"]
float16: dtype = TYPES["float16"]
float32: dtype = TYPES["float32"]
float64: dtype = TYPES["float64"]
complex64: dtype = TYPES["complex64"]
complex128: dtype = TYPES["complex128"]
bfloat16: dtype = TYPES["bfloat16"]
bool: dtype = TYPES["bool"]


__all__ = [
    *_functions,
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CustomPlace",
    "Event",
    "IPUPlace",
    "Stream",
    "Tensor",
    "XPUPinnedPlace",
    "XPUPlace",
    "base",
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "cuda",
    "device",
    "device_guard",
    "dtype",
    "float16",
    "float32",
    "float64",
    "framework",
    "get_cudnn_version",
    "get_default_device",
    "get_default_dtype",
    "get_device",
    "get_device_module",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_custom_device",
    "is_compiled_with_distribute",
    "is_compiled_with_ipu",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "set_default_device",
    "set_default_dtype",
    "set_device",
    "uint8",
]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
