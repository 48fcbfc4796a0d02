"""Memory of CUDA devices shared with other libraries: DLPack and CUDA's array interface."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory
from halstream._core import _base, _reap
from other_library import CUDA, NOT_READY, PINNED, Library, Tensor

LIMIT = 10.0
Hold = Callable[[Any], Any]
Make = Callable[..., Library]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("cuda-driver")]


def settle() -> None:
    """Give back what was collected, and what that held."""
    gc.collect()
    _base.drain()
    _base.drain()


def held(hold: Hold) -> tuple[Any, hs.Array]:
    """Return memory with a fill pending, and the gate that it waits for."""
    ours, s = hs.zeros(4), hs.Stream(non_blocking=True)
    hs.synchronize()
    gate = hold(s)
    ours.fill(1.0, s)
    return gate, ours


# -- ours in others' hands ------------------------------------------------------


@pytest.mark.parametrize("device", [0, 1])
def test_dlpacks_device_is_cuda_and_its_number(device: int) -> None:
    assert hs.zeros(3, device=device).__dlpack_device__() == (CUDA, device)
    assert _memory.DeviceMemory(8, device).__dlpack_device__() == (CUDA, device)
    assert _memory.PinnedMemory(8).__dlpack_device__() == (PINNED, 0)


def test_the_driver_finds_the_contents_at_the_address(library: Make) -> None:
    values = np.arange(6.0)
    ours = hs.asarray(values)
    hs.synchronize()
    assert library().read(ours.ptr, values).tolist() == values.tolist()


def test_numpy_gets_a_copy_for_the_cpu_and_no_view_of_the_device() -> None:
    values = np.arange(6.0).reshape(2, 3)
    ours = hs.asarray(values)
    theirs = np.from_dlpack(ours, device="cpu")
    ours.fill(0.0)
    hs.synchronize()
    np.testing.assert_array_equal(theirs, values)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(ours)
    with pytest.raises(BufferError, match="copy=False is not possible"):
        np.from_dlpack(ours, device="cpu", copy=False)


def test_pinned_memory_is_numpys_without_a_copy() -> None:
    pinned = _memory.PinnedMemory(8)
    view = np.from_dlpack(pinned)
    view[:] = 7
    assert view.__array_interface__["data"][0] == pinned.ptr
    out = np.zeros(8, np.uint8)
    _memory.copy_blocking(out.ctypes.data, pinned.ptr, 8)
    assert out.tolist() == [7] * 8
    with pytest.raises(BufferError, match="still uses"):
        pinned.free()
    del view
    gc.collect()
    pinned.free()


def test_an_export_makes_the_consumers_stream_wait_and_not_the_host(hold: Hold, library: Make) -> None:
    theirs = library()
    handle = theirs.stream()
    gate, ours = held(hold)
    capsule = ours.__dlpack__(stream=handle)
    assert theirs.query(handle) == NOT_READY
    gate.open()
    s = hs.Stream.from_handle(handle)
    s.synchronize(timeout=LIMIT)
    assert theirs.query(handle) == 0
    del s, capsule
    settle()
    theirs.destroy(handle)


def test_without_pending_work_the_consumers_stream_waits_for_nothing(hold: Hold, library: Make) -> None:
    theirs, other = library(), hs.Stream(non_blocking=True)
    handle, ours = theirs.stream(), hs.zeros(4)
    hs.synchronize()
    hold(other)
    ours.__dlpack__(stream=handle)
    assert theirs.query(handle) == 0
    settle()
    theirs.destroy(handle)


def test_the_array_interface_of_cuda(hold: Hold) -> None:
    ours = hs.zeros((2, 3), "f4")
    hs.synchronize()
    assert ours.__cuda_array_interface__ == {
        "version": 3, "shape": (2, 3), "typestr": "<f4", "data": (ours.ptr, False), "strides": None, "stream": None,
    }  # fmt: skip
    assert not hasattr(ours, "__array_interface__")
    assert not hasattr(_memory.PinnedMemory(3), "__cuda_array_interface__")
    gate, pending = held(hold)
    assert pending.__cuda_array_interface__["stream"] == 1  # the legacy default stream is never 0
    assert not hs.Device(0).default_stream.query()
    gate.open()
    hs.Device(0).default_stream.synchronize(timeout=LIMIT)
    assert pending.__cuda_array_interface__["stream"] is None


def test_exported_memory_is_kept_until_the_capsule_is_released() -> None:
    ours = hs.asarray(np.arange(100.0))
    memory, address = ours._memory, ours.ptr
    capsule = ours.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="still uses"):
        memory.free()
    del ours
    settle()
    assert _memory.lookup(address)[0] == _memory.DEVICE
    del capsule
    settle()
    memory.free()
    assert _memory.lookup(address)[0] == _memory.PAGEABLE


# -- theirs in ours ---------------------------------------------------------------


@pytest.mark.parametrize("device", [0, 1])
def test_another_librarys_tensor_is_shared_and_stays_on_its_device(device: int, library: Make) -> None:
    theirs = Tensor(library(device), np.arange(8.0).reshape(2, 4))
    ours = hs.from_dlpack(theirs)
    assert ours.ptr == theirs.address and ours.device == hs.Device(device)
    assert ours.shape == (2, 4) and ours.dtype == np.float64
    s = hs.Stream(device=device)
    ours[1].fill(5.0, s)
    s.synchronize(timeout=LIMIT)
    assert theirs.read() == [[0, 1, 2, 3], [5, 5, 5, 5]]
    assert ours.numpy(s).tolist() == theirs.read()


def test_the_producer_receives_the_consumers_stream(library: Make) -> None:
    theirs, s = Tensor(library(), np.arange(4.0)), hs.Stream()
    first = hs.from_dlpack(theirs, stream=s)
    second = hs.from_dlpack(theirs)
    with s:
        third = hs.from_dlpack(theirs)
    assert theirs.asked == [s.handle, 1, s.handle]
    assert first.ptr == second.ptr == third.ptr


def test_imported_memory_is_released_after_the_work_on_it_and_not_before(hold: Hold, library: Make) -> None:
    theirs = Tensor(library(), np.arange(4.0))
    ours, target, s = hs.from_dlpack(theirs), hs.empty(4), hs.Stream(non_blocking=True)
    gate = hold(s)
    ours.fill(9.0, s)
    target.copy_from(ours, s)
    del ours
    settle()
    assert theirs.deleted == 0
    gate.open()
    assert target.numpy(s).tolist() == [9.0] * 4
    settle()
    assert theirs.deleted == 1
    assert theirs.read() == [9.0] * 4


def test_views_keep_imported_memory_and_free_releases_it_at_once(library: Make) -> None:
    theirs = Tensor(library(), np.arange(4.0))
    part = hs.from_dlpack(theirs)[1:3]
    settle()
    assert theirs.deleted == 0
    assert part.numpy().tolist() == [1.0, 2.0]
    part._memory.free()
    settle()
    assert theirs.deleted == 1
    with pytest.raises(hs.InvalidValueError):
        part.fill(0.0)


def test_a_kernel_works_on_it(library: Make, hold: Hold) -> None:
    theirs = Tensor(library(), np.arange(4, dtype=np.float32))
    kernel = hs.Kernel(
        'extern "C" __global__ void scale_f32(float *x, float a, unsigned n) {\n'
        "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) x[i] *= a;\n"
        "}\n",
        name="scale_f32",
        signature="inout float32 *x, float32 a, uint32 n",
    )
    ours, s = hs.from_dlpack(theirs), hs.Stream(non_blocking=True)
    kernel.load()  # a driver may wait for the device when it loads a kernel
    gate = hold(s)
    s.launch(kernel, 1, 4, ours, 2.0, 4)
    del ours
    settle()
    assert theirs.deleted == 0
    gate.open()
    s.synchronize(timeout=LIMIT)
    settle()
    assert theirs.read() == [0.0, 2.0, 4.0, 6.0]
    assert theirs.deleted == 1


def test_a_copy_shares_nothing(library: Make) -> None:
    theirs = Tensor(library(), np.arange(4.0))
    for ours in (hs.from_dlpack(theirs, copy=True), hs.from_dlpack(theirs, device=1)):
        assert ours.ptr != theirs.address
        ours.fill(0.0)
        hs.synchronize(ours.device)
    assert theirs.read() == [0, 1, 2, 3]
    assert ours.device == hs.Device(1)
    with pytest.raises(BufferError, match="another device"):
        hs.from_dlpack(theirs, device=1, copy=False)


def test_what_lies_on_the_host_is_copied_to_the_device() -> None:
    values = np.arange(6.0).reshape(2, 3)
    for source in (values, values.T):
        ours = hs.from_dlpack(source)
        np.testing.assert_array_equal(ours.numpy(), source)
        with pytest.raises(BufferError, match="allow a copy"):
            hs.from_dlpack(source, copy=False)
    assert _memory.lookup(ours.ptr)[0] == _memory.DEVICE


def test_a_device_that_this_process_does_not_have_is_refused(library: Make) -> None:
    theirs = Tensor(library(), np.arange(4.0))
    theirs.library.ordinal = 40
    try:
        with pytest.raises(hs.InvalidDeviceError):
            hs.from_dlpack(theirs)
    finally:
        theirs.library.ordinal = 0
    assert theirs.asked == []


@pytest.mark.parametrize("kind", [8, 10, 99])
def test_memory_of_other_vendors_is_refused_before_its_capsule_is_requested(kind: int, library: Make) -> None:
    class Elsewhere(Tensor):
        def __dlpack_device__(self) -> tuple[int, int]:
            return kind, 0

    theirs = Elsewhere(library(), np.arange(4.0))
    with pytest.raises(BufferError, match="CUDA devices cannot"):
        hs.from_dlpack(theirs)
    assert theirs.asked == []


# -- among our own ----------------------------------------------------------------


def test_an_array_of_the_runtime_is_shared_and_ordered(hold: Hold) -> None:
    gate, ours = held(hold)
    s = hs.Stream(non_blocking=True)
    same = hs.from_dlpack(ours, stream=s)
    assert same.ptr == ours.ptr and same.device == ours.device
    assert not s.query()
    gate.open()
    assert same.numpy(s).tolist() == [1.0] * 4


def test_a_consumer_may_give_a_capsule_back_on_any_thread() -> None:
    arrays = [hs.zeros(16) for _ in range(32)]
    hs.synchronize()
    capsules = [array.__dlpack__(stream=1) for array in arrays]
    addresses = [array.ptr for array in arrays]
    del arrays
    threads = [threading.Thread(target=lambda part=capsules[i::4]: part.clear()) for i in range(4)]
    capsules.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    del threads, thread
    settle()
    assert not _reap.lent
    assert all(_memory.lookup(address)[0] == _memory.PAGEABLE for address in addresses)
