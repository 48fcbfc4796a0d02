"""The functions of torch._C that a CUDA build has, over the module, and torch.cuda's names of the CUDA runtime.

None of a CUDA wheel's own functions of these names is left: they would reach the
driver of a real GPU with addresses that are not the GPU's.
"""

from __future__ import annotations

import ctypes
import enum
import functools
from types import SimpleNamespace
from typing import Any, NoReturn

from ..._core import _interop
from ..._traces import annotations as _annotations
from .classes import bases
from .errors import NotBuiltError
from .figures import complete
from .history import History
from .patches import Patches
from .processes import collect
from .properties import DeviceProperties, capability, properties
from .snapshot import segments, snapshot

__all__ = ["patch"]

# Settings that torch keeps in memory of its own: they reach no driver.
_KEPT = (
    "_cuda_get_cudnn_benchmark_limit", "_cuda_set_cudnn_benchmark_limit", "_cuda_get_conv_benchmark_empty_cache",
    "_cuda_tunableop_", "_cuda_record_untuned_", "_cuda_CUDAAllocator",
    "_cuda_getCompiledVersion",
)  # fmt: skip

_WHAT = {
    "_cuda_jiterator_compile_and_launch_kernel": "torch.cuda.jiterator: there is no CUDA compiler",
    "_cuda_getCurrentBlasHandle": "torch.cuda.current_blas_handle: there is no cuBLAS",
    "_cuda_getCurrentSolverHandle": "torch.cuda.current_solver_handle: there is no cuSOLVER",
    "_cuda_customAllocator": "torch.cuda.CUDAPluggableAllocator: memory comes from halstream's pools",
    "_cuda_changeCurrentAllocator": "torch.cuda.memory.change_current_allocator: memory comes from halstream's pools",
    "_device_range_start": "ranges of torch.cuda.nvtx on the device; range_push and range_pop are there",
    "_device_range_end": "ranges of torch.cuda.nvtx on the device; range_push and range_pop are there",
    "_cuda_cudaHostAllocator": "the address of CUDA's allocator of pinned memory",
}


def patch(torch: Any, module: Any, patches: Patches) -> None:
    """Replace them all."""
    native = torch._C
    given = {name: getattr(module, name) for name in module.torch_c_names()}
    history = History(module, lambda: segments(module))
    names = {**_functions(torch, module, history), **given}
    names["_cuda_emptyCache"] = lambda: history.emptied(module._cuda_emptyCache)
    names["_cuda_memoryStats"] = lambda device: complete(module._cuda_memoryStats(device))
    for name in dir(native):
        if name.startswith("_cuda_") and name not in names and not name.startswith(_KEPT):
            names[name] = _refusal(name)
    stream, event = bases(torch, module)
    names.update(_has_cuda=True, _CudaStreamBase=stream, _CudaEventBase=event, _CudaDeviceProperties=DeviceProperties)
    for name, value in names.items():
        patches.set(native, name, value)
    runtime = _runtime(torch, module)
    ranges = SimpleNamespace(
        rangePushA=_annotations.push, rangePop=_annotations.pop, rangeStartA=_annotations.start,
        rangeEnd=_annotations.end, markA=_annotations.mark,
        deviceRangeStart=_refusal("_device_range_start"), deviceRangeEnd=_refusal("_device_range_end"),
    )  # fmt: skip
    patches.set(native, "_cudart", runtime)
    patches.set(native, "_nvtx", ranges)
    patches.set(torch.cuda.nvtx, "_nvtx", ranges)
    patches.set(torch.cuda, "_cudart", runtime)


def _refusal(name: str) -> Any:
    what = _WHAT.get(name, f"torch._C.{name}")

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltError(f"not built in halstream, whose devices have no driver of CUDA: {what}")

    refuse.__name__ = name
    return refuse


def _functions(torch: Any, module: Any, history: History) -> dict[str, Any]:
    """Return the functions that the module leaves to Python."""
    debug_mode = 0
    known = functools.cache(functools.partial(properties, module))

    def initialise() -> None:
        module.start()
        torch.cuda.default_generators = tuple(module.default_generator(i) for i in range(module._cuda_getDeviceCount()))
        torch.cuda._get_device_properties = known

    def set_debug_mode(mode: int) -> None:
        nonlocal debug_mode
        debug_mode = mode

    major, minor = capability()
    return {
        "_cuda_init": initialise,
        "_cuda_isInBadFork": _interop.in_forked_child,
        "_cuda_getArchFlags": lambda: f"sm_{major}{minor}",
        "_cuda_canDeviceAccessPeer": lambda device, peer: device != peer,
        "_cuda_ipc_collect": collect,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_get_sync_debug_mode": lambda: debug_mode,
        "_cuda_set_sync_debug_mode": set_debug_mode,
        "_cuda_memorySnapshot": lambda of=None: snapshot(module, history, of),
        "_cuda_isHistoryEnabled": lambda: history.enabled,
        "_cuda_record_memory_history": history.record,
        "_cuda_record_memory_history_legacy": history.record_legacy,
        "_cuda_memoryMetadataSupported": lambda: True,
        "_cuda_setMemoryMetadata": history.set_metadata,
        "_cuda_getMemoryMetadata": history.metadata,
        "_cuda_allocationTraceback": history.traceback,
        "_cuda_clearCublasWorkspaces": lambda: None,
        "_cuda_getCublasWorkspaceSize": lambda: 0,
        "_cuda_getCublasLtWorkspaceSize": lambda: 0,
        "_cuda_setCublasWorkspaceSize": lambda size: None,
        "_cuda_setCublasLtWorkspaceSize": lambda size: None,
        "_cuda_resetCublasWorkspaceSize": lambda: None,
        "_cuda_resetCublasLtWorkspaceSize": lambda: None,
    }


class cudaError(enum.IntEnum):
    """The codes of the CUDA runtime that torch names."""

    success = 0
    invalidValue = 1
    memoryAllocation = 2
    invalidResourceHandle = 400
    notReady = 600
    hostMemoryAlreadyRegistered = 712
    hostMemoryNotRegistered = 713


_ERRORS = {
    0: "no error", 1: "invalid argument", 2: "out of memory", 400: "invalid resource handle", 600: "device not ready",
    712: "part or all of the requested memory range is already mapped",
    713: "pointer does not correspond to a registered memory region",
}  # fmt: skip


def _runtime(torch: Any, module: Any) -> SimpleNamespace:
    """Return what torch.cuda.cudart() gives."""

    created: dict[int, Any] = {}

    def unregister(address: int) -> cudaError:
        return cudaError.success if module.host_unregister(address) else cudaError.hostMemoryNotRegistered

    def register(address: int, size: int, flags: int = 0) -> cudaError:
        torch.empty(1).pin_memory()  # before the first pinned tensor of torch none counts as pinned
        return cudaError.success if module.host_register(address, size) else cudaError.hostMemoryAlreadyRegistered

    def create_stream(place: int) -> cudaError:
        made = torch.cuda.Stream()
        created[made.cuda_stream] = made
        ctypes.c_uint64.from_address(place).value = made.cuda_stream
        return cudaError.success

    def destroy_stream(handle: int) -> cudaError:
        # Streams come from the pool of torch, whose streams live as long as the process.
        return cudaError.success if created.pop(handle, None) else cudaError.invalidResourceHandle

    def profiler() -> cudaError:
        return cudaError.success

    return SimpleNamespace(
        cudaError=cudaError,
        cudaGetErrorString=lambda code: _ERRORS.get(int(code), "unrecognized error code"),
        cudaMemGetInfo=module.mem_get_info,
        cudaHostRegister=register,
        cudaHostUnregister=unregister,
        cudaProfilerStart=profiler,
        cudaProfilerStop=profiler,
        cudaStreamCreate=create_stream,
        cudaStreamDestroy=destroy_stream,
    )
