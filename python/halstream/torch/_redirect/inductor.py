"""torch.compile under the redirected torch: torch's own compiler as it is, with the kernels that it makes run here."""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .errors import RedirectError
from .patches import Patches
from .triton import tunes_all

__all__ = ["changes", "patch", "same_addresses", "tensor_over"]

_VARIABLE = "HALSTREAM_TORCH_COMPILE"
_EAGER = "HALSTREAM_TORCH_COMPILE is 'eager': what torch.compile is given runs operator by operator"
_NO_TRITON = (
    "torch.compile compiles nothing for 'cuda', since Triton is not installed: what it is given runs operator by "
    "operator; `pip install triton` brings it"
)
# What Inductor must not do here: compile in processes of its own, which know nothing of this driver; launch by a
# function of CUDA's; run kernels to see how long they take, which says nothing of a GPU.
_SETTINGS = {
    "compile_threads": 1,
    "use_static_triton_launcher": False,
    "use_static_cuda_launcher": False,  # its name before torch 2.15
    "dynamic_scale_rblock": False,
}


def patch(torch: Any, patches: Patches) -> None:
    """Replace what is there before Inductor is imported.

    Raises
    ------
    RedirectError
        If the environment names a mode that does not exist.
    """
    mode = os.environ.get(_VARIABLE, "")
    if mode not in ("", "eager"):
        raise RedirectError(f"{_VARIABLE} is {mode!r}; give 'eager', or leave it out for torch's own compilation")
    if mode == "eager" or importlib.util.find_spec("triton") is None:
        patches.set(torch, "compile", _eagerly(torch, torch.compile, _EAGER if mode else _NO_TRITON))
        return
    native, guards = torch._C, torch._C._dynamo.guards

    def empty_strided(size: Any, stride: Any, dtype: Any) -> Any:
        return torch.empty_strided(size, stride, dtype=dtype, device="cuda")

    patches.set(guards, "_empty_strided_cuda", empty_strided)  # torch's allocates past the dispatcher
    # A wheel without CUDA lacks these.
    for name, value in (
        ("_construct_CUDA_Tensor_From_Storage_And_Metadata", functools.partial(tensor_over, torch)),
        ("_tensors_data_ptrs_at_indices_equal", same_addresses),
        ("_cuda_CUDAAllocator_AllocatorState", object),
        ("_cuda_get_conv_benchmark_empty_cache", lambda: False),
        ("_cudnn_set_conv_benchmark_empty_cache", lambda value: None),
    ):
        if not hasattr(native, name):
            patches.set(native, name, value)


def tensor_over(torch: Any, metadata: dict[str, Any], storage: Any) -> Any:
    """Return a tensor of a storage: torch._C._construct_CUDA_Tensor_From_Storage_And_Metadata."""
    made = torch.empty(0, dtype=metadata["dtype"], device=metadata["device"])
    return made.set_(storage, metadata["storage_offset"], metadata["size"], metadata["stride"])


def same_addresses(tensors: Any, addresses: Any, indices: Any) -> bool:
    """Return True if tensors are where they were: torch._C._tensors_data_ptrs_at_indices_equal."""
    return all(tensors[i].data_ptr() == addresses[i] for i in indices)


def _eagerly(torch: Any, compile: Any, text: str) -> Any:
    """Return what stands for torch.compile where it compiles nothing, and says so once."""
    warned = False

    @functools.wraps(compile)
    def eager(model: Any = None, **options: Any) -> Any:
        nonlocal warned
        if not warned:
            warned = True
            warnings.warn(text, UserWarning, stacklevel=2)
            torch.compiler.set_stance("force_eager")
        return compile(model, **options)

    return eager


def changes(torch: Any, patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do with the modules of Dynamo and Inductor, by name, once each is imported."""

    def settings(config: ModuleType) -> None:
        for name, value in _SETTINGS.items():
            if hasattr(config, name):
                _set(patches, config, name, value)

    def sizes(utils: ModuleType) -> None:
        # Templates of matrix products ask for more multiprocessors than this device has.
        patches.set(utils, "is_big_gpu", lambda *args, **kwargs: True)

    def selection(select: ModuleType) -> None:
        choose = select.AlgorithmSelectorCache.__call__

        @functools.wraps(choose)
        def first(self: Any, name: Any, choices: Any, *args: Any, **kwargs: Any) -> Any:
            return choose(self, name, choices if tunes_all() else choices[:1], *args, **kwargs)

        patches.set(select.AlgorithmSelectorCache, "__call__", first)

    def heuristics(found: ModuleType) -> None:
        compile_all = found.CachingAutotuner._precompile_worker
        refused = found.NoTritonConfigsError

        @functools.wraps(compile_all)
        def compile_first(self: Any) -> None:
            configs = self.configs
            if self.compile_results or not configs or tunes_all():
                compile_all(self)
                return
            for config in configs[:-1]:
                self.configs = [config]
                try:
                    compile_all(self)
                    return
                except refused:
                    pass
            self.configs = configs[-1:]
            compile_all(self)

        tune = found.CachingAutotuner.coordinate_descent_tuning

        @functools.wraps(tune)
        def keep(self: Any, launcher: Any, *args: Any, **kwargs: Any) -> Any:
            return tune(self, launcher, *args, **kwargs) if tunes_all() else launcher

        patches.set(found.CachingAutotuner, "_precompile_worker", compile_first)
        patches.set(found.CachingAutotuner, "coordinate_descent_tuning", keep)

    def interface(found: ModuleType) -> None:
        raw_stream = torch._C._cuda_getCurrentRawStream
        patches.set(found, "get_cuda_stream", raw_stream)
        patches.set(found.CudaInterface, "get_raw_stream", staticmethod(raw_stream))
        for name in ("Event", "Stream"):
            patches.set(found.CudaInterface, name, getattr(torch.cuda, name))
        for name in ("exchange_device", "maybe_exchange_device"):
            patches.set(found.CudaInterface, name, staticmethod(getattr(torch.cuda, f"_{name}")))

    def devices(found: ModuleType) -> None:
        if hasattr(found, "CUDADeviceVariable"):
            for name in ("_exchange", "_maybe_exchange"):
                given = staticmethod(getattr(torch.cuda, f"{name}_device"))
                patches.set(found.CUDADeviceVariable, f"{name}_fn", given)

    def streams(found: ModuleType) -> None:
        if hasattr(found, "CudaStreamVariable"):
            patches.set(found.CudaStreamVariable, "_cpython_type", torch.cuda.Stream)

    return {
        "torch._inductor.config": settings,
        "torch._inductor.utils": sizes,
        "torch._inductor.select_algorithm": selection,
        "torch._inductor.runtime.triton_heuristics": heuristics,
        "torch._dynamo.device_interface": interface,
        "torch._dynamo.variables.ctx_manager": devices,
        "torch._dynamo.variables.streams": streams,
    }


def _set(patches: Patches, config: Any, name: str, value: Any) -> None:
    """Set a setting of Inductor, which are no attributes in its modules' dictionaries."""
    before = getattr(config, name)
    setattr(config, name, value)
    patches.on_undo(lambda: setattr(config, name, before))
