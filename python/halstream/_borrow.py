"""Memory of other libraries, taken through DLPack."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import struct
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._array import Array, asarray, empty
from ._base import drain, reap_memory
from ._device import ordinal
from ._errors import InvalidValueError, NotSupportedError
from ._exchange import NAME, READ_ONLY, VERSIONED, Exchange, ExchangeError
from ._held import Held
from ._interop import backend_name
from ._memory import PAGEABLE, Memory, current, lookup
from ._stream import Stream

__all__ = ["BorrowedMemory", "from_dlpack"]

# Names of DLPack's device types that a user may meet.
_DEVICES = {
    1: "the CPU", 2: "a CUDA device", 3: "pinned memory of CUDA", 4: "an OpenCL device",
    7: "a Vulkan device", 8: "a Metal device", 10: "a ROCm device", 11: "pinned memory of ROCm",
    13: "managed memory of CUDA", 14: "a oneAPI device",
}  # fmt: skip
_HOST_TYPES = {1, 3, 11, 13}
_STREAM_TYPES = {2, 10, 13}  # whose producers take the consumer's stream
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}

_TENSOR = struct.Struct("=Qiii2BHQQQ")
_MANAGED_DELETER = 56  # behind the tensor and the context
_VERSIONED_HEAD = struct.Struct("=II8xQQ")


class _Tensor(NamedTuple):
    """What a capsule says."""

    address: int  # of the managed tensor, which its deleter takes
    deleter: int
    flags: int
    device: tuple[int, int]
    ptr: int
    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...] | None  # in elements, None if in C order

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)


class _Api(NamedTuple):
    valid: Any
    name: Any
    pointer: Any
    rename: Any
    deleter: Any


@functools.cache
def _api() -> _Api:
    python, capsule = ctypes.pythonapi, ctypes.py_object

    def function(name: str, result: Any, *arguments: Any) -> Any:
        prototype = ctypes.PYFUNCTYPE(result, *arguments)
        return prototype((f"PyCapsule_{name}", python))

    return _Api(
        function("IsValid", ctypes.c_int, capsule, ctypes.c_char_p),
        function("GetName", ctypes.c_char_p, capsule),
        function("GetPointer", ctypes.c_void_p, capsule, ctypes.c_char_p),
        function("SetName", ctypes.c_int, capsule, ctypes.c_char_p),
        # With Python's lock held: there are deleters that rely on it.
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p),
    )


# Capsules keep the address of their name.
_USED = {NAME: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}


def _open(capsule: Any) -> tuple[bytes, int]:
    """Return the name and the address of a capsule that nobody has consumed."""
    api = _api()
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"__dlpack__() gave a {type(capsule).__name__}, not a capsule")
    for name in (VERSIONED, NAME):
        if api.valid(capsule, name):
            return name, int(api.pointer(capsule, name))
    name = api.name(capsule) or b""
    if name in _USED.values():
        raise ExchangeError(
            "this capsule was consumed already; ask its producer for another one",
            operation="import",
        )
    raise ExchangeError(
        f"a capsule named {name.decode(errors='replace')!r} is none of DLPack", operation="import"
    )


def _read(name: bytes, address: int) -> _Tensor:
    flags, at = 0, address
    if name == VERSIONED:
        major, minor, deleter, flags = _VERSIONED_HEAD.unpack(ctypes.string_at(address, 32))
        if major != 1:
            raise ExchangeError(
                f"the tensor has version {major}.{minor} of DLPack; 1 is understood",
                operation="import",
            )
        at += 32
    else:
        (deleter,) = struct.unpack("=Q", ctypes.string_at(address + _MANAGED_DELETER, 8))
    data, kind, ident, ndim, code, bits, lanes, shape_at, strides_at, offset = _TENSOR.unpack(
        ctypes.string_at(at, _TENSOR.size)
    )
    shape = _numbers(shape_at, ndim)
    strides = _numbers(strides_at, ndim) if strides_at else None
    if strides is not None and _in_order(shape, strides):
        strides = None
    dtype = _dtype(code, bits, lanes)
    return _Tensor(address, deleter, flags, (kind, ident), data + offset, shape, dtype, strides)


def _numbers(address: int, count: int) -> tuple[int, ...]:
    if count == 0:
        return ()
    return struct.unpack(f"={count}q", ctypes.string_at(address, 8 * count))


def _in_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return 0 in shape
        step *= length
    return True


def _dtype(code: int, bits: int, lanes: int) -> Any:
    with contextlib.suppress(TypeError):
        if lanes == 1 and bits % 8 == 0:
            if code in _KINDS:
                return np.dtype(f"{_KINDS[code]}{bits // 8}")
            if (code, bits) == (4, 16):
                return np.dtype("bfloat16")  # known while the package ml_dtypes is loaded
    raise ExchangeError(
        f"NumPy has no dtype for DLPack's element type (code {code}, {bits} bits, {lanes} lanes)",
        operation="import",
    )


class BorrowedMemory(Memory):
    """Memory that belongs to another library, which lives until this is collected."""

    __slots__ = ("_registered", "_tensor", "device", "readonly")

    def __init__(self, tensor: _Tensor, device: int, registered: int) -> None:
        self._tensor = tensor
        self._registered = registered
        self.device = device
        self.readonly = bool(tensor.flags & READ_ONLY)
        self.ptr, self.nbytes = tensor.ptr, tensor.nbytes

    def free(self) -> None:
        """Give it back to the other library once pending work on it is done."""
        if self.ptr:
            self.__del__()
            self.ptr = 0
            drain()

    def __del__(self) -> None:
        if getattr(self, "ptr", 0) and reap_memory is not None:
            others = getattr(self, "_others", ())
            # Called by drain: a finalizer may not enter the extension.
            reap_memory.append(functools.partial(_Return, self._tensor, self._registered, others))


class _Return(Held):
    """Borrowed memory on its way back."""

    def __init__(self, tensor: _Tensor, registered: int, others: Iterable[Stream]) -> None:
        super().__init__(tensor.ptr, 0, -1, None, others)
        self.tensor, self.registered = tensor, registered

    def passed(self) -> bool:
        return super().passed() and not _native.mem_pending(self.ptr)

    def give_back(self) -> None:
        _native.mem_wait(self.ptr, -1)
        if self.registered:
            _unregister(self.registered)
        _delete(self.tensor)


def _delete(tensor: _Tensor) -> None:
    if tensor.deleter:
        _api().deleter(tensor.deleter)(tensor.address)


# Memory of the host that was made known to the runtime: start -> uses. Tensors
# may share it.
_registered: dict[int, int] = {}
_lock = threading.RLock()


def _register(tensor: _Tensor) -> int | None:
    """Make borrowed memory known; return the block to forget, 0 for none.

    None says that it shares bytes with other blocks without being part of one.
    """
    with _lock:
        kind, start, size, _ = lookup(tensor.ptr)
        if kind == PAGEABLE:
            try:
                _native.host_register(tensor.ptr, tensor.nbytes)
            except InvalidValueError:
                return None
            start = tensor.ptr
            _registered[start] = 0
        elif tensor.ptr + tensor.nbytes > start + size:
            return None
        if start not in _registered:
            return 0  # the runtime's own
        _registered[start] += 1
        return start


def _unregister(start: int) -> None:
    with _lock:
        _registered[start] -= 1
        if not _registered[start]:
            del _registered[start]
            with contextlib.suppress(InvalidValueError):  # by hand, or the backend was changed
                _native.host_unregister(start)


def _request(source: Any, stream: Stream | None) -> Any:
    """Return a capsule of another library's tensor, ordered before our stream."""
    try:
        kind, ident = source.__dlpack_device__()
        kind, ident = int(kind), int(ident or 0)  # paddle has None for the CPU's number
        export = source.__dlpack__
    except AttributeError:
        raise TypeError(
            f"from_dlpack() takes an object with __dlpack__ and __dlpack_device__, not "
            f"{type(source).__name__}"
        ) from None
    _check_device(kind, ident)
    asked: dict[str, Any] = {}
    if isinstance(source, Exchange):
        asked["stream"] = current(stream)
    elif kind in _STREAM_TYPES:
        asked["stream"] = current(stream).handle or 1  # 0 is ambiguous in DLPack
    try:
        return export(max_version=(1, 0), **asked)
    except TypeError:
        return export(**asked)  # from before version 1.0


def _check_device(kind: int, ident: int) -> None:
    backend = backend_name()
    if backend != "host":
        raise NotSupportedError(
            f"importing tensors on the {backend} backend is not built yet", operation="import"
        )
    if kind not in _HOST_TYPES:
        where = _DEVICES.get(kind, f"a device of DLPack's type {kind}")
        raise ExchangeError(
            f"the tensor is on {where} (number {ident}), and devices of the host backend see "
            "the memory of the host only; copy it there first",
            operation="import",
        )


def from_dlpack(
    source: Any, /, *, device: Any = None, copy: bool | None = None, stream: Stream | None = None
) -> Array:
    """Return an Array of another library's tensor, by DLPack.

    Parameters
    ----------
    source : object with ``__dlpack__`` and ``__dlpack_device__``, or a capsule
        NumPy arrays, tensors of torch and paddle, arrays of cupy and jax, `Array`.
    device : Device, int, str or None
        None is the memory's device if it is one of the runtime's, else the current one.
    copy : bool or None
        True makes a copy; False never does; None does if the tensor is not
        in C order or cannot be shared.
    stream : Stream or None
        Where it is used first; None is the current one.

    Raises
    ------
    BufferError
        If the tensor is on another kind of device, has an element type that
        NumPy lacks, was consumed already, or would need a copy with ``copy=False``.
    TypeError
        If `source` has nothing to do with DLPack.

    Notes
    -----
    Shared memory of the host counts as pinned while it is borrowed: a stream
    reads it when it gets there. It goes back to its owner when the last view
    is gone and the work on it is done.

    Examples
    --------
    >>> import halstream as hs, numpy as np
    >>> theirs = np.zeros(4)
    >>> ours = hs.from_dlpack(theirs)
    >>> ours.fill(2.0)
    >>> hs.synchronize()
    >>> theirs
    array([2., 2., 2., 2.])
    """
    drain()
    capsule = source if type(source).__name__ == "PyCapsule" else _request(source, stream)
    name, address = _open(capsule)
    tensor = _read(name, address)
    _check_device(*tensor.device)
    if tensor.nbytes == 0:
        return empty(tensor.shape, tensor.dtype, device)
    kind, _, _, owner = lookup(tensor.ptr)
    where = owner if device is None and kind != PAGEABLE and owner >= 0 else ordinal(device)
    stays = tensor.strides is None and (owner < 0 or owner == where)
    registered = None if copy or not stays else _register(tensor)
    if registered is None:
        if copy is False:
            raise ExchangeError(
                "the tensor cannot be shared: it is not in C order, is on another device, or "
                "overlaps memory that was shared already; allow a copy",
                operation="import",
            )
        return _copy(tensor, where, stream)
    _api().rename(capsule, _USED[name])
    memory = BorrowedMemory(tensor, where, registered)
    return Array(memory, tensor.ptr, tensor.shape, tensor.dtype)


class _Foreign:
    """The memory of a tensor as NumPy sees it."""

    def __init__(self, tensor: _Tensor) -> None:
        size = tensor.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "shape": tensor.shape,
            "typestr": tensor.dtype.str,
            "descr": tensor.dtype.descr,
            "data": (tensor.ptr, True),
            "strides": tensor.strides and tuple(n * size for n in tensor.strides),
        }


def _copy(tensor: _Tensor, device: int, stream: Stream | None) -> Array:
    """Return a copy of a tensor whose capsule stays unconsumed and is collected."""
    # A tensor of the runtime itself may have work pending, which its producer
    # ordered before our stream only.
    _native.mem_wait(tensor.ptr, -1)
    copied = np.array(_Foreign(tensor), order="C").view(tensor.dtype)
    return asarray(copied, device=device, stream=stream)
