"""Tensors of torch and paddle, and functions of numba, on memory of streams."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._core import _base, _reap

LIMIT = 10.0
Hold = Callable[[Any], Any]
Library = Callable[[str], Any]

pytestmark = pytest.mark.usefixtures("backend")

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64", "complex64"]


def where() -> str:
    """Return torch's name of the devices that halstream's memory is on."""
    return "cuda" if hs.backend() == "cuda" else "cpu"


class Torch:
    def __init__(self, library: Library) -> None:
        self.module = library("torch")
        self.device = where()

    def take(self, ours: Any) -> Any:
        return self.module.from_dlpack(ours)

    def make(self, values: Any) -> Any:
        return self.module.from_numpy(values).clone().to(self.device)

    def numbers(self, theirs: Any) -> Any:
        return theirs.cpu().numpy()


class Paddle:
    def __init__(self, library: Library) -> None:
        self.module = library("paddle")
        if where() != "cpu":
            pytest.skip("the package of paddle that is tested has no GPU")
        self.module.set_device("cpu")

    def take(self, ours: Any) -> Any:
        return self.module.utils.dlpack.from_dlpack(ours)

    def make(self, values: Any) -> Any:
        return self.module.to_tensor(values)

    def numbers(self, theirs: Any) -> Any:
        return theirs.numpy()


@pytest.fixture(params=[Torch, Paddle])
def peer(request: pytest.FixtureRequest, library: Library) -> Any:
    return request.param(library)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (2, 3), (1, 2, 1)])
def test_a_tensor_of_halstream_memory_shares_it(peer: Any, dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape)) % 2).reshape(shape).astype(dtype)
    ours = hs.asarray(values)
    theirs = peer.take(ours)
    assert theirs.data_ptr() == ours.ptr and tuple(theirs.shape) == shape
    np.testing.assert_array_equal(peer.numbers(theirs), values)
    ours.fill(np.ones((), dtype))
    hs.synchronize()
    np.testing.assert_array_equal(peer.numbers(theirs), np.ones(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_of_their_memory_shares_it(peer: Any, dtype: str) -> None:
    values = (np.arange(6) % 2).reshape(2, 3).astype(dtype)
    theirs = peer.make(values)
    ours = hs.from_dlpack(theirs)
    assert ours.ptr == theirs.data_ptr() and ours.dtype == values.dtype and ours.shape == (2, 3)
    np.testing.assert_array_equal(ours.numpy(), values)


@pytest.mark.needs("host")
def test_a_stream_works_on_their_memory(peer: Any, hold: Hold) -> None:
    theirs = peer.make(np.zeros(1 << 15, "f4"))
    ours, s = hs.from_dlpack(theirs), hs.Stream()
    gate = hold(s)
    ours.fill(2.0, s)
    s.call(lambda view: view.__imul__(4.0), ours)
    assert not peer.numbers(theirs).any()
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert (peer.numbers(theirs) == 8.0).all()


def test_a_tensor_is_made_after_the_pending_work(peer: Any, hold: Hold) -> None:
    ours, s, seen = hs.zeros(4, "f4"), hs.Stream(non_blocking=True), []
    hs.synchronize()
    gate = hold(s)
    ours.fill(7.0, s)
    thread = threading.Thread(target=lambda: seen.append(peer.numbers(peer.take(ours)).copy()), daemon=True)
    thread.start()
    thread.join(0.05)
    assert not seen
    gate.open()
    thread.join(LIMIT)
    np.testing.assert_array_equal(seen[0], np.full(4, 7.0))


def test_memory_is_kept_until_the_last_tensor_is_collected_on_any_thread(peer: Any) -> None:
    gc.collect()
    _base.drain()
    before = len(_reap.lent)
    tensors = [peer.take(hs.asarray(np.full(256, i, "f4"))) for i in range(32)]
    gc.collect()
    assert [float(peer.numbers(t)[0]) for t in tensors] == list(range(32))
    parts = [[tensors.pop() for _ in range(8)] for _ in range(4)]
    threads = [threading.Thread(target=part.clear) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    gc.collect()
    _base.drain()
    assert len(_reap.lent) == before


def test_foreign_memory_is_kept_until_the_array_is_collected(peer: Any) -> None:
    arrays = [hs.from_dlpack(peer.make(np.full(1 << 16, i, "f4"))) for i in range(16)]
    gc.collect()
    assert [float(a.numpy()[-1]) for a in arrays] == list(range(16))
    arrays.clear()
    _base.drain()


def test_a_round_trip_gives_the_same_memory(peer: Any) -> None:
    if hs.device_count() < 2:
        pytest.skip("needs a second device: this machine has one")
    ours = hs.asarray(np.arange(4.0), device=1)
    back = hs.from_dlpack(peer.take(ours))
    assert back.ptr == ours.ptr and back.device == hs.Device(1)


def test_torch_strided_read_only_and_old_capsules(library: Library) -> None:
    torch = library("torch")
    theirs = torch.arange(12, device=where()).reshape(3, 4)
    if where() == "cuda":  # a device's memory is copied in C order only
        with pytest.raises(BufferError, match="C order"):
            hs.from_dlpack(theirs.T)
    else:
        np.testing.assert_array_equal(hs.from_dlpack(theirs.T).numpy(), theirs.T.numpy())
    with pytest.raises(BufferError, match="C order"):
        hs.from_dlpack(theirs.T, copy=False)
    assert hs.from_dlpack(theirs[1]).ptr == theirs[1].data_ptr()
    capsule = torch.utils.dlpack.to_dlpack(theirs)
    assert hs.from_dlpack(capsule).ptr == theirs.data_ptr()
    with pytest.raises(BufferError, match="consumed already"):
        hs.from_dlpack(capsule)
    again = torch.utils.dlpack.from_dlpack(hs.asarray(np.arange(3)).__dlpack__())
    assert again.tolist() == [0, 1, 2]
    with pytest.raises((BufferError, RuntimeError)):
        hs.from_dlpack(torch.zeros(3, requires_grad=True, device=where()))
    with pytest.raises(BufferError, match="element type"):
        hs.from_dlpack(torch.zeros(3, dtype=torch.float8_e5m2, device=where()))
    copied = torch.from_dlpack(hs.asarray(np.arange(3)), copy=True)
    assert copied.tolist() == [0, 1, 2]


def test_torch_bfloat16_with_ml_dtypes(library: Library) -> None:
    torch, ml_dtypes = library("torch"), library("ml_dtypes")
    theirs = torch.arange(4, dtype=torch.bfloat16, device=where())
    ours = hs.from_dlpack(theirs)
    assert ours.dtype == ml_dtypes.bfloat16
    assert torch.from_dlpack(ours).data_ptr() == theirs.data_ptr()


@pytest.mark.needs("host")
def test_numba_functions_on_streams_and_on_shared_memory(library: Library, hold: Hold) -> None:
    numba = library("numba")
    ours = hs.asarray(np.arange(5.0))

    @numba.njit
    def twice(values: Any) -> None:
        for i in range(values.size):
            values[i] *= 2

    twice(np.asarray(ours))
    np.testing.assert_array_equal(ours.numpy(), 2 * np.arange(5.0))

    @numba.cfunc(numba.types.void(numba.types.CPointer(numba.types.double)))
    def add_one(values: Any) -> None:
        for i in range(5):
            values[i] += 1

    s = hs.Stream()
    gate = hold(s)
    s.call_native(add_one, ours, writes=[ours])
    s.call(lambda view: twice(view), ours)
    gate.open()
    s.synchronize(timeout=LIMIT)
    np.testing.assert_array_equal(ours.numpy(), 2 * (2 * np.arange(5.0) + 1))
    assert ctypes.cast(add_one.address, ctypes.c_void_p).value


def test_tensors_of_a_gpu_both_ways(gpu: None, library: Library) -> None:
    torch = library("torch")
    ours = hs.asarray(np.arange(4.0))
    theirs = torch.from_dlpack(ours)
    assert theirs.is_cuda and theirs.data_ptr() == ours.ptr and theirs.tolist() == [0, 1, 2, 3]
    assert hs.from_dlpack(theirs).ptr == ours.ptr
    cupy = library("cupy")
    assert cupy.asarray(ours).data.ptr == ours.ptr  # __cuda_array_interface__
