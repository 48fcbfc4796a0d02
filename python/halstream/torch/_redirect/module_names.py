"""The names of torch's Python modules that must not reach a GPU's driver, compiler or libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from . import extensions, graphs, green_contexts, inductor, sensors, triton
from .classes import executed
from .errors import NotBuiltError
from .kernels import Kernels
from .patches import Patches, when_imported

__all__ = ["patch"]

_CUDA_SOURCE = (
    "halstream cannot compile CUDA C++: {}. Give a CPU version of each operator with "
    "halstream.torch.register_kernel(name, function)"
)
_ALLOCATOR = (
    "torch.cuda.memory.CUDAPluggableAllocator: memory of a device comes from halstream's pools. Leave the allocator "
    "out here, also in torch.cuda.MemPool and change_current_allocator: use_mem_pool works without one"
)


def patch(torch: Any, module: Any, patches: Patches, given: Kernels) -> None:
    """Replace names of torch.cuda, torch.compile and of what compiles kernels; torch._C has been patched."""
    cuda = torch.cuda
    classes = executed(torch, module, "torch.cuda.streams")
    for owner in (cuda, cuda.streams):
        for name in ("Stream", "Event", "ExternalStream"):
            patches.set(owner, name, getattr(classes, name))
    native = torch._C
    patches.set(cuda, "_CudaDeviceProperties", native._CudaDeviceProperties)
    patches.set(cuda, "_exchange_device", native._cuda_exchangeDevice)
    patches.set(cuda, "_maybe_exchange_device", native._cuda_maybeExchangeDevice)
    patches.set(cuda, "_is_in_bad_fork", native._cuda_isInBadFork)
    patches.set(cuda, "_device_count_nvml", lambda: -1)
    patches.set(cuda, "_raw_device_count_nvml", lambda: -1)
    patches.set(cuda, "_raw_device_uuid_nvml", lambda: None)
    patches.set(cuda, "_cached_device_count", None)
    patches.set(cuda, "_initialized", False)
    patches.set(cuda, "default_generators", ())
    patches.set(cuda, "_get_device_properties", None)
    sensors.patch(torch, patches)
    when_imported(patches, sensors.changes(torch, module, patches))
    graphs.patch(torch, module, patches)
    if not green_contexts.patch(torch, patches):
        patches.set(
            cuda, "GreenContext", _refusing_class("GreenContext", "green contexts are there from torch 2.15 on")
        )
    patches.set(cuda.memory.CUDAPluggableAllocator, "__init__", _refusal(_ALLOCATOR))
    inductor.patch(torch, patches)
    when_imported(patches, inductor.changes(torch, patches))
    _kernels(torch, module, patches, given)


def _refusal(text: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltError(text)

    return refuse


def _refusing_class(name: str, text: str) -> type:
    return type(name, (), {"__init__": _refusal(text), "__module__": "torch.cuda"})


# -- kernels of others --------------------------------------------------------


def _kernels(torch: Any, module: Any, patches: Patches, given: Kernels) -> None:
    patches.set(torch.cuda, "_compile_kernel", _refusal(_CUDA_SOURCE.format("torch.cuda._compile_kernel")))
    when_imported(patches, triton.changes(torch, module, patches, given.triton))
    when_imported(patches, extensions.changes(torch, module, patches, given.extensions))
    extensions.patch(patches, given.extensions)
