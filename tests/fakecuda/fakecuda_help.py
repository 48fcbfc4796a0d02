"""The look-alike driver through ctypes: one call, one code, as its ABI says.

Its tests use a copy of the library of their own, which a backend under test in
the same process does not share.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from fakecuda_kernels import ptx

LIBRARY = Path(__file__).resolve().parent.parent.parent / "build" / "fakecuda" / "libfakecuda.so"
#: Seconds after which a wait counts as never ending.
LIMIT = 10.0

NON_BLOCKING, DISABLE_TIMING = 1, 2
LEGACY = 1
INVALID_VALUE, NOT_INITIALIZED, INVALID_CONTEXT, INVALID_HANDLE = 1, 3, 201, 400
NOT_READY, ILLEGAL_ADDRESS, NOT_PERMITTED, NOT_SUPPORTED = 600, 700, 800, 801

HostFunction = ctypes.CFUNCTYPE(None, c_void_p)

# Q: handle or address of 64 bits, P: pointer, z: size_t, i/I: int and unsigned, s: text.
TYPES = {"Q": c_uint64, "P": c_void_p, "z": c_size_t, "i": c_int, "I": c_uint, "s": c_char_p}
SIGNATURES = {
    "cuInit": "I",
    "cuDriverGetVersion": "P",
    "cuGetProcAddress_v2": "sPiQP",
    "cuDeviceGetCount": "P",
    "cuDeviceGetAttribute": "Pii",
    "cuDeviceGetDefaultMemPool": "Pi",
    "cuDevicePrimaryCtxRetain": "Pi",
    "cuDevicePrimaryCtxRelease_v2": "i",
    "cuCtxSetCurrent": "Q",
    "cuCtxGetCurrent": "P",
    "cuCtxSynchronize": "",
    "cuCtxRecordEvent": "QQ",
    "cuCtxEnablePeerAccess": "QI",
    "cuStreamCreate": "PI",
    "cuStreamCreateWithPriority": "PIi",
    "cuStreamDestroy_v2": "Q",
    "cuStreamQuery": "Q",
    "cuStreamSynchronize": "Q",
    "cuStreamWaitEvent": "QQI",
    "cuStreamGetId": "QP",
    "cuStreamGetDevice": "QP",
    "cuStreamWaitValue32_v2": "QQII",
    "cuStreamWriteValue32_v2": "QQII",
    "cuStreamWaitValue64_v2": "QQQI",
    "cuStreamWriteValue64_v2": "QQQI",
    "cuStreamBatchMemOp_v2": "QIPI",
    "cuStreamIsCapturing": "QP",
    "cuStreamBeginCapture_v2": "Qi",
    "cuStreamEndCapture": "QP",
    "cuGraphCreate": "PI",
    "cuGraphAddEmptyNode": "PQPz",
    "cuGraphAddMemsetNode": "PQPzPQ",
    "cuGraphAddKernelNode_v2": "PQPzP",
    "cuGraphAddBatchMemOpNode": "PQPzP",
    "cuGraphDestroy": "Q",
    "cuGraphGetNodes": "QPP",
    "cuGraphGetEdges": "QPPP",
    "cuGraphInstantiateWithFlags": "PQQ",
    "cuGraphExecDestroy": "Q",
    "cuGraphLaunch": "QQ",
    "cuGraphAddNode": "PQPzP",
    "cuGraphConditionalHandleCreate": "PQQII",
    "cuGraphNodeGetType": "QP",
    "cuStreamBeginCaptureToGraph": "QQPPzi",
    "cuThreadExchangeStreamCaptureMode": "P",
    "cuEventCreate": "PI",
    "cuEventRecord": "QQ",
    "cuEventQuery": "Q",
    "cuEventSynchronize": "Q",
    "cuEventDestroy_v2": "Q",
    "cuEventElapsedTime": "PQQ",
    "cuEventElapsedTime_v2": "PQQ",
    "cuLaunchHostFunc": "QPP",
    "cuMemAlloc_v2": "Pz",
    "cuMemFree_v2": "Q",
    "cuMemHostAlloc": "PzI",
    "cuMemFreeHost": "P",
    "cuMemHostRegister_v2": "PzI",
    "cuMemHostUnregister": "P",
    "cuMemcpyHtoDAsync_v2": "QPzQ",
    "cuMemcpyDtoHAsync_v2": "PQzQ",
    "cuMemcpyDtoDAsync_v2": "QQzQ",
    "cuMemcpyPeerAsync": "QQQQzQ",
    "cuMemPoolSetAccess": "QPz",
    "cuMemPoolGetAccess": "PQP",
    "cuMemcpy2DAsync_v2": "PQ",
    "cuMemsetD8Async": "QIzQ",
    "cuMemsetD16Async": "QIzQ",
    "cuMemsetD32Async": "QIzQ",
    "cuMemAllocAsync": "PzQ",
    "cuMemFreeAsync": "QQ",
    "cuMemAllocFromPoolAsync": "PzQQ",
    "cuMemPoolCreate": "PP",
    "cuMemPoolTrimTo": "Qz",
    "cuMemPoolSetAttribute": "QiP",
    "cuMemPoolGetAttribute": "QiP",
    "cuPointerGetAttribute": "PiQ",
    "cuPointerGetAttributes": "IPPQ",
    "cuModuleLoadData": "PP",
    "cuModuleUnload": "Q",
    "cuModuleGetFunction": "PQs",
    "cuFuncGetAttribute": "PiQ",
    "cuFuncLoad": "Q",
    "cuMemAllocManaged": "PzI",
    "cuFuncSetAttribute": "Qii",
    "cuLaunchKernel": "QIIIIIIIQPP",
}


def until(condition: Callable[[], bool], what: str) -> None:
    """Look until a condition holds; fail after `LIMIT`."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.0005)


class Word:
    """A number in pinned memory that streams wait for and write."""

    def __init__(self, driver: Driver) -> None:
        self.address = driver.pinned(4)
        self._at = c_uint32.from_address(self.address)
        self._at.value = 0

    @property
    def value(self) -> int:
        return self._at.value

    @value.setter
    def value(self, value: int) -> None:
        self._at.value = value


class Driver:
    """The library; ``driver.cuEventQuery(event)`` returns the code of the call."""

    #: Whether it is a vendor's driver.
    real = False

    def __init__(self, path: Path) -> None:
        self.lib = ctypes.CDLL(str(path))
        self.prepare()
        for name, letters in SIGNATURES.items():
            function = getattr(self.lib, name)
            function.argtypes = [TYPES[letter] for letter in letters]
            setattr(self, name, function)
        self.holds: list[Word] = []
        self.kept: list[Any] = []
        self.log: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        raise AttributeError(name)

    # ---- Control ----

    def prepare(self) -> None:
        """Declare the functions that no other driver has."""
        self.lib.fakecuda_host.argtypes = [c_uint64]
        self.lib.fakecuda_host.restype = c_void_p
        self.lib.fakecuda_count.restype = c_uint64

    def is_allocated(self, address: int) -> bool:
        """Say whether there is memory at an address."""
        return self.lib.fakecuda_host(address) is not None

    def control(self, command: str) -> int:
        return int(self.lib.fakecuda_control(command.encode()))

    def count(self, name: str) -> int:
        return int(self.lib.fakecuda_count(name.encode()))

    # ---- Short forms ----

    def made(self, name: str, *args: Any) -> int:
        """Call a function whose first argument is a place for a 64-bit result."""
        place = c_uint64()
        code = getattr(self, name)(byref(place), *args)
        assert code == 0, f"{name} returned {code}"
        return place.value

    def asked(self, name: str, *args: Any, type: Any = c_uint64) -> Any:
        """Call a function whose last argument is a place for a result."""
        place = type()
        code = getattr(self, name)(*args, byref(place))
        assert code == 0, f"{name} returned {code}"
        return place.value

    def context(self, device: int = 0) -> int:
        """Retain the primary context of a device and make it current."""
        context = self.made("cuDevicePrimaryCtxRetain", device)
        assert self.cuCtxSetCurrent(context) == 0
        return context

    def stream(self, flags: int = NON_BLOCKING) -> int:
        return self.made("cuStreamCreate", flags)

    def event(self, flags: int = DISABLE_TIMING) -> int:
        return self.made("cuEventCreate", flags)

    def memory(self, size: int) -> int:
        return self.made("cuMemAlloc_v2", size)

    def pinned(self, size: int) -> int:
        return self.made("cuMemHostAlloc", size, 0)

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of device memory, past the driver."""
        at = self.lib.fakecuda_host(address)
        assert at is not None
        return ctypes.string_at(at, size)

    def hold(self, stream: int) -> Word:
        """Hold a stream until the word is set; it opens after the test in any case."""
        word = Word(self)
        assert self.cuStreamWaitValue32_v2(stream, word.address, 1, 0) == 0
        self.holds.append(word)
        return word

    def pending(self, stream: int) -> bool:
        """Say whether a stream has work left, after giving it every chance to end.

        A stream that is not really held comes to rest while work goes through others.
        """
        word = Word(self)
        for i in range(20):
            probe = self.stream()
            assert self.cuStreamWriteValue32_v2(probe, word.address, i, 0) == 0
            until(lambda probe=probe: self.cuStreamQuery(probe) == 0, "the end of work on a free stream")
            assert self.cuStreamDestroy_v2(probe) == 0
        return self.cuStreamQuery(stream) == NOT_READY

    def host_function(self, stream: int, function: Callable[[], object]) -> int:
        callback = HostFunction(lambda _: function())
        self.kept.append(callback)
        return int(self.cuLaunchHostFunc(stream, callback, None))

    def release_after(self, name: str, word: Word) -> threading.Thread:
        """Open a hold from another thread once a call of the function has begun.

        Before that the thread gives a call that does not wait every chance to
        return. It notes "released" in the log.
        """
        before = self.count(name)

        def release() -> None:
            until(lambda: self.count(name) > before, f"a call of {name}")
            for _ in range(200):
                self.cuDriverGetVersion(byref(c_int()))
            self.log.append("released")
            word.value = 1

        thread = threading.Thread(target=release)
        thread.start()
        return thread

    def waits(self, name: str, *args: Any, on: Word) -> bool:
        """Say whether a call returns only after a hold is opened."""
        self.log.clear()
        thread = self.release_after(name, on)
        code = getattr(self, name)(*args)
        self.log.append("returned")
        thread.join(LIMIT)
        assert code == 0, f"{name} returned {code}"
        return self.log == ["released", "returned"]

    # ---- Kernels ----

    def function(self, entry: str, params: str, body: str = "") -> int:
        module = self.made("cuModuleLoadData", ptx(entry, params, body))
        return self.made("cuModuleGetFunction", module, entry.encode())

    def launch(
        self, function: int, stream: int, *args: Any, grid: tuple[int, ...] = (1, 1, 1), block: Any = (32, 1, 1)
    ) -> int:
        """Launch with ctypes values as arguments."""
        pointers = (c_void_p * max(1, len(args)))(*[ctypes.addressof(a) for a in args])
        return int(self.cuLaunchKernel(function, *grid, *block, 0, stream, pointers, None))


def environment(**values: object) -> Iterator[None]:
    """Set variables ``FAKECUDA_...`` for a while."""
    names = [name for name in os.environ if name.startswith("FAKECUDA_") or name == "CUDA_VISIBLE_DEVICES"]
    before = {name: os.environ.pop(name) for name in names}
    for name, value in values.items():
        os.environ[name if name.isupper() else f"FAKECUDA_{name.upper()}"] = str(value)
    yield
    for name in values:
        os.environ.pop(name if name.isupper() else f"FAKECUDA_{name.upper()}", None)
    os.environ.update(before)


__all__ = [name for name in globals() if name[0] != "_"] + ["POINTER", "c_float"]
