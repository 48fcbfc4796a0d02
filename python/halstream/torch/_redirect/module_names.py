"""The names of torch's Python modules that must not reach a GPU's driver, compiler or libraries."""

from __future__ import annotations

import functools
import importlib.abc
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

from . import graphs, green_contexts, inductor, sensors, triton
from .classes import executed
from .errors import NotBuiltError
from .patches import Patches

__all__ = ["patch", "when_imported"]

_CUDA_SOURCE = (
    "halstream cannot compile CUDA C++: {}. Give a CPU version of each operator with "
    "halstream.torch.register_kernel(name, function)"
)
_ALLOCATOR = (
    "torch.cuda.memory.CUDAPluggableAllocator: memory of a device comes from halstream's pools. Leave the allocator out "
    "here, also in torch.cuda.MemPool and change_current_allocator: use_mem_pool works without one"
)


def patch(torch: Any, module: Any, patches: Patches, triton_kernels: Mapping[str, Callable[..., Any]]) -> None:
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
        patches.set(cuda, "GreenContext", _refusing_class("GreenContext", "green contexts are there from torch 2.15 on"))
    patches.set(cuda.memory.CUDAPluggableAllocator, "__init__", _refusal(_ALLOCATOR))
    inductor.patch(torch, patches)
    when_imported(patches, inductor.changes(torch, patches))
    _kernels(torch, module, patches, triton_kernels)


def _refusal(text: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltError(text)

    return refuse


def _refusing_class(name: str, text: str) -> type:
    return type(name, (), {"__init__": _refusal(text), "__module__": "torch.cuda"})


# -- kernels of others --------------------------------------------------------


def _kernels(torch: Any, module: Any, patches: Patches, given: Mapping[str, Callable[..., Any]]) -> None:
    patches.set(torch.cuda, "_compile_kernel", _refusal(_CUDA_SOURCE.format("torch.cuda._compile_kernel")))
    when_imported(patches, triton.changes(torch, module, patches, given))
    when_imported(patches, {"torch.utils.cpp_extension": _extensions(patches)})


def when_imported(patches: Patches, actions: dict[str, Callable[[ModuleType], None]]) -> None:
    """Call each function with the module of its name once that is imported; at once if it is."""
    whens = _WhenImported(actions)
    sys.meta_path.insert(0, whens)
    patches.set(whens, "active", True)


def _extensions(patches: Patches) -> Callable[[ModuleType], None]:
    def change(extension: ModuleType) -> None:
        load, inline = extension.load, extension.load_inline

        @functools.wraps(load)
        def checked_load(name: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            given = [sources] if isinstance(sources, str) else list(sources)
            found = next((str(one) for one in given if str(one).endswith((".cu", ".cuh"))), None)
            if found is not None:
                raise NotBuiltError(_CUDA_SOURCE.format(f"{found} of the extension {name!r}"))
            return load(name, sources, *args, **kwargs)

        @functools.wraps(inline)
        def checked_inline(name: Any, cpp_sources: Any, cuda_sources: Any = None, *args: Any, **kwargs: Any) -> Any:
            if cuda_sources:
                raise NotBuiltError(_CUDA_SOURCE.format(f"cuda_sources of the extension {name!r}"))
            return inline(name, cpp_sources, cuda_sources, *args, **kwargs)

        patches.set(extension, "load", checked_load)
        patches.set(extension, "load_inline", checked_inline)

    return change


class _WhenImported(importlib.abc.MetaPathFinder):
    """What `when_imported` adds to the finders of modules."""

    active = False

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        self._actions = dict(actions)
        for name in list(actions):
            if name in sys.modules:
                self._actions.pop(name)(sys.modules[name])

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not self.active or name not in self._actions:
            return None
        action = self._actions.pop(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executing(module: ModuleType) -> None:
                execute(module)
                action(module)

            spec.loader.exec_module = executing  # type: ignore[method-assign]
        return spec
