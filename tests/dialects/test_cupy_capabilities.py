"""What cupy devices say they can do is what they do: each answer is compared with a trial."""

from __future__ import annotations

import ctypes
import gc
import mmap
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Device, Stream, runtime

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
SIZE = 4096


def memory_pools() -> None:
    stream = Stream(non_blocking=True)
    runtime.freeAsync(runtime.mallocAsync(SIZE, stream.ptr), stream.ptr)
    cuda.MemoryAsyncPool().malloc(SIZE)
    stream.synchronize()


def managed_memory() -> None:
    runtime.free(runtime.mallocManaged(SIZE))
    cuda.malloc_managed(SIZE)


def host_access_of_managed_memory() -> None:
    stream = Stream(non_blocking=True)
    memory = cuda.malloc_managed(SIZE)
    memory.memset_async(7, SIZE, stream)
    stream.synchronize()
    assert ctypes.string_at(memory.ptr, SIZE) == b"\7" * SIZE


def pools_of_other_processes() -> None:
    runtime.memPoolDestroy(runtime.memPoolCreate(runtime.MemPoolProps(1, 1, 1, 0)))


def registered_memory() -> None:
    memory = mmap.mmap(-1, SIZE)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    runtime.hostRegister(address, SIZE, 0)
    try:
        # The device's address of the memory is the host's.
        assert runtime.pointerGetAttributes(address).devicePointer == address
    finally:
        runtime.hostUnregister(address)


def mapped_memory() -> None:
    address = runtime.hostAlloc(SIZE, runtime.hostAllocMapped)
    try:
        assert runtime.pointerGetAttributes(address).devicePointer == address
    finally:
        runtime.freeHost(address)


def pageable_memory() -> None:
    stream = Stream(non_blocking=True)
    pageable = np.zeros(4)
    stream.call(pageable.fill, 7)
    stream.synchronize()
    assert pageable.tolist() == [7] * 4


def stream_priorities() -> None:
    assert Stream(priority=-1).priority != Stream(priority=0).priority


def concurrent_work() -> None:
    """Two functions on two streams that wait for each other."""
    meet = threading.Barrier(2)
    streams = [Stream(non_blocking=True) for _ in range(2)]
    for stream in streams:
        stream.launch_host_func(meet.wait, LIMIT)
    for stream in streams:
        stream.synchronize()


TRIALS: dict[str, Callable[[], None]] = {
    "MemoryPoolsSupported": memory_pools,
    "ManagedMemory": managed_memory,
    "ConcurrentManagedAccess": host_access_of_managed_memory,
    "DirectManagedMemAccessFromHost": host_access_of_managed_memory,
    "MemoryPoolSupportedHandleTypes": pools_of_other_processes,
    "HostRegisterSupported": registered_memory,
    "CanMapHostMemory": mapped_memory,
    "StreamPrioritiesSupported": stream_priorities,
    "ConcurrentKernels": concurrent_work,
}


def works(trial: Callable[[], None]) -> bool:
    try:
        trial()
    except hs.NotSupportedError:
        return False
    return True


@pytest.mark.parametrize("name", TRIALS)
def test_an_attribute_is_what_a_trial_shows(name: str) -> None:
    answer = runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), 0)
    assert bool(answer) == works(TRIALS[name])


@pytest.mark.needs("host")
@pytest.mark.parametrize(
    ("name", "trial"),
    [
        ("PageableMemoryAccess", pageable_memory),
        ("PageableMemoryAccessUsesHostPageTables", pageable_memory),
        ("CanUseHostPointerForRegisteredMem", registered_memory),
    ],
)
def test_host_devices_use_memory_where_it_lies(name: str, trial: Callable[[], None]) -> None:
    assert Device(0).attributes[name] == works(trial) == 1


# What `getDeviceProperties` of the package gives, beside names and the tuples below.
PROPERTIES = """
    ECCEnabled accessPolicyMaxWindowSize asyncEngineCount canMapHostMemory
    canUseHostPointerForRegisteredMem clockRate computeMode computePreemptionSupported concurrentKernels
    concurrentManagedAccess cooperativeLaunch cooperativeMultiDeviceLaunch deviceOverlap
    directManagedMemAccessFromHost globalL1CacheSupported hostNativeAtomicSupported integrated isMultiGpuBoard
    kernelExecTimeoutEnabled l2CacheSize localL1CacheSupported luidDeviceNodeMask major managedMemory
    maxBlocksPerMultiProcessor maxSurface1D maxSurfaceCubemap maxTexture1D maxTexture1DLinear
    maxTexture1DMipmap maxTextureCubemap maxThreadsPerBlock maxThreadsPerMultiProcessor memoryBusWidth
    memoryClockRate minor multiGpuBoardGroupID multiProcessorCount pageableMemoryAccess
    pageableMemoryAccessUsesHostPageTables pciBusID pciDeviceID pciDomainID persistingL2CacheMaxSize regsPerBlock
    regsPerMultiprocessor reservedSharedMemPerBlock sharedMemPerBlock sharedMemPerBlockOptin
    sharedMemPerMultiprocessor singleToDoublePrecisionPerfRatio streamPrioritiesSupported surfaceAlignment
    tccDriver textureAlignment texturePitchAlignment totalConstMem totalGlobalMem unifiedAddressing warpSize
"""

TUPLES = {
    "maxGridSize": 3,
    "maxSurface1DLayered": 2,
    "maxSurface2D": 2,
    "maxSurface2DLayered": 3,
    "maxSurface3D": 3,
    "maxSurfaceCubemapLayered": 2,
    "maxTexture1DLayered": 2,
    "maxTexture2D": 2,
    "maxTexture2DGather": 2,
    "maxTexture2DLayered": 3,
    "maxTexture2DLinear": 3,
    "maxTexture2DMipmap": 2,
    "maxTexture3D": 3,
    "maxTexture3DAlt": 3,
    "maxTextureCubemapLayered": 2,
    "maxThreadsDim": 3,
}


def test_the_keys_of_the_properties_are_the_packages() -> None:
    properties = runtime.getDeviceProperties(0)
    assert set(properties) == {*PROPERTIES.split(), *TUPLES, "name", "uuid", "luid"}
    assert all(type(properties[name]) is int for name in PROPERTIES.split())
    assert {name: len(properties[name]) for name in TUPLES} == TUPLES
    assert (len(properties["uuid"]), len(properties["luid"])) == (16, 8)
    assert properties["uuid"] == runtime.getDeviceProperties(0)["uuid"]
    assert properties["uuid"] != runtime.getDeviceProperties(1)["uuid"]
    with Device(0):
        assert properties["totalGlobalMem"] == runtime.memGetInfo()[1] > 0


def test_properties_and_attributes_agree() -> None:
    properties, attributes = runtime.getDeviceProperties(1), Device(1).attributes
    assert properties["managedMemory"] == attributes["ManagedMemory"]
    assert properties["multiProcessorCount"] == attributes["MultiProcessorCount"]
    assert properties["maxThreadsDim"] == tuple(attributes[f"MaxBlockDim{axis}"] for axis in "XYZ")
    for name, number in ((n, getattr(runtime, f"cudaDevAttr{n}")) for n in attributes):
        assert runtime.deviceGetAttribute(number, 1) == attributes[name]


# -- the limit of the environment -------------------------------------------


def test_a_pool_starts_with_the_limit_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", str(4 * SIZE))
    pool = cuda.MemoryPool()
    assert pool.get_limit() == 4 * SIZE
    kept = pool.malloc(3 * SIZE)
    text = f"^Out of memory allocating {2 * SIZE:,} bytes .*limit set to: {4 * SIZE:,} bytes"
    with pytest.raises(cuda.memory.OutOfMemoryError, match=text):
        pool.malloc(2 * SIZE)
    with Device(1):
        assert pool.get_limit() == 4 * SIZE
    pool.set_limit()  # the program's own choice wins, for this device
    assert pool.malloc(2 * SIZE).ptr and kept.ptr
    with Device(1):
        assert pool.get_limit() == 4 * SIZE
    gc.collect()


@pytest.mark.parametrize(("text", "part"), [("50%", 0.5), ("0%", 0), ("100%", 1)])
def test_the_limit_of_the_environment_may_be_a_part(text: str, part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", text)
    assert cuda.MemoryPool().get_limit() == int(part * runtime.memGetInfo()[1])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x", "invalid literal"),
        ("-1", "memory limit size out of range: -1"),
        ("150%", "memory limit fraction out of range: 1.5"),
        ("%", "could not convert"),
    ],
)
def test_a_bad_limit_of_the_environment(text: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", text)
    for _ in range(2):
        with pytest.raises(ValueError, match=error):
            cuda.MemoryPool().malloc(1)


def test_the_limit_of_the_environment_in_a_new_process(child: Any) -> None:
    program = """
        from halstream.cupy import cuda
        import halstream.cupy as cp

        print(cp.get_default_memory_pool().get_limit())
        try:
            cp.empty(1 << 20)
        except cuda.memory.OutOfMemoryError as exc:
            print(exc)
    """
    done = child(program, env={"CUPY_GPU_MEMORY_LIMIT": "1048576"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1048576"
    assert "Out of memory allocating 8,388,608 bytes" in done.stdout


# -- the texts of errors ----------------------------------------------------


def test_an_error_has_the_packages_text_and_the_reason() -> None:
    with pytest.raises(runtime.CUDARuntimeError) as info:
        runtime.streamSynchronize(999999)
    error: Any = info.value
    assert str(error).startswith("cudaErrorInvalidResourceHandle: invalid resource handle (")
    assert str(error).endswith(f"({error.detail})") and error.detail


def test_the_error_of_a_forked_process_names_spawn(child: Any) -> None:
    program = """
        import os, warnings
        from halstream.cupy import cuda

        cuda.Stream()
        warnings.simplefilter("ignore")
        pid = os.fork()
        if not pid:
            for call in (cuda.Stream, cuda.runtime.getDeviceCount, cuda.Device(0).synchronize):
                try:
                    call()
                except cuda.runtime.CUDARuntimeError as exc:
                    print(exc.status, exc, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    """
    lines = child(program).stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("3 cudaErrorInitializationError: initialization error (")
        assert "'spawn'" in line
