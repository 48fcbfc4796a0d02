"""Memory of other libraries, taken through DLPack."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import _native
from .._core._device import ordinal
from .._core._interop import backend_name
from .._core._lookup import PAGEABLE, lookup
from .._core._reap import GiveBack, drain, lent
from .._core._stream import Stream
from .._errors import InvalidValueError
from ._array import Array, asarray, empty
from ._blocks import Memory
from ._capsule import Tensor, delete, open_capsule, read, use
from ._copies import copy as copy_bytes
from ._copies import current
from ._exchange import READ_ONLY, Exchange, ExchangeError, tokens

__all__ = ["BorrowedMemory", "from_dlpack"]

# Device types of DLPack: those of a vendor's devices, of which the runtime takes its own vendor's only.
_DEVICE_TYPES = {2, 12, 13}
_STREAM_TYPES = {2, 10, 13}  # whose producers take the consumer's stream


class BorrowedMemory(Memory):
    """Memory that belongs to another library, which lives until this is collected.

    It goes back to its library once the work on it that was enqueued by then is done.
    """

    __slots__ = ("device", "foreign", "readonly")

    def __init__(self, tensor: Tensor, device: int, share: int, foreign: bool = False) -> None:
        self.ptr = 0
        self.device = device
        self.foreign = foreign
        self.readonly = bool(tensor.flags & READ_ONLY)
        self.nbytes = tensor.nbytes
        token = next(tokens)
        self._id = _native.block_borrow(tensor.ptr, tensor.nbytes, token)
        lent[token] = GiveBack(functools.partial(_give_back, tensor, share))
        self.ptr = tensor.ptr

    def free(self) -> None:
        """Give it back to the other library once pending work on it is done."""
        super().free()
        drain()


def _give_back(tensor: Tensor, share: int) -> None:
    if share:
        _native.host_unshare(share)
    delete(tensor)


def _share(tensor: Tensor) -> int | None:
    """Keep borrowed memory registered; return the id of the share, 0 for none.

    None says that the memory overlaps a block without lying in it, or cannot be
    registered.
    """
    try:
        return _native.host_share(tensor.ptr, tensor.nbytes)
    except InvalidValueError:
        return None


def _request(source: Any, stream: Stream | None) -> Any:
    """Return a capsule of another library's tensor, ordered before the given stream."""
    try:
        kind, ident = source.__dlpack_device__()
        kind, ident = int(kind), int(ident or 0)  # paddle has None for the CPU's number
        export = source.__dlpack__
    except AttributeError:
        raise TypeError(
            f"from_dlpack() takes an object with __dlpack__ and __dlpack_device__, not {type(source).__name__}"
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
    try:
        _native.dlpack_check_device(kind, ident)
    except InvalidValueError as exc:
        raise _native.error(exc, {"invalid_value": ExchangeError}) from None


def from_dlpack(source: Any, /, *, device: Any = None, copy: bool | None = None, stream: Stream | None = None) -> Array:
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
    Shared memory of the host counts as pinned while it is borrowed: work on
    streams reads it when it runs. It is given back to its owner when the last view
    was collected and the work on it has completed. On a vendor's backend memory of its
    devices is shared; what lies on the host is copied.

    Examples
    --------
    >>> import halstream as hs, numpy as np
    >>> array = np.zeros(4)
    >>> shared = hs.from_dlpack(array)
    >>> shared.fill(2.0)
    >>> hs.synchronize()
    >>> array
    array([2., 2., 2., 2.])
    """
    drain()
    capsule = source if type(source).__name__ == "PyCapsule" else _request(source, stream)
    name, address = open_capsule(capsule)
    tensor = read(name, address)
    _check_device(*tensor.device)
    if tensor.nbytes == 0:
        return empty(tensor.shape, tensor.dtype, device)
    host = backend_name() == "host"
    on_device = not host and tensor.device[0] in _DEVICE_TYPES
    kind, _, _, owner = lookup(tensor.ptr)
    if on_device:
        owner = tensor.device[1]
    known = on_device or (kind != PAGEABLE and owner >= 0)
    where = owner if device is None and known else ordinal(device)
    stays = tensor.strides is None and (owner < 0 or owner == where) and (host or on_device)
    share: int | None = None
    if stays and not copy:
        share = _share(tensor) if host else 0
    if share is None:
        if copy is False:
            raise ExchangeError(
                "the tensor cannot be shared: it is not in C order, is on another device"
                f"{' or overlaps memory that was shared already' if host else ' or on the host'}; "
                "allow a copy",
                operation="import",
            )
        return _copy_here(tensor, where, stream) if on_device else _copy(tensor, where, stream)
    # In this order: the memory is registered before the capsule counts as used, and what
    # owns the tensor is made last. If a signal raised in between, the deleter would be
    # called twice in any other order.
    use(capsule, name)
    # What the runtime gave out itself keeps its own account of the work on it.
    memory = BorrowedMemory(tensor, where, share, on_device and kind == PAGEABLE)
    return Array(memory, tensor.ptr, tensor.shape, tensor.dtype)


class _Foreign:
    """The memory of a tensor as NumPy sees it."""

    def __init__(self, tensor: Tensor) -> None:
        size = tensor.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "shape": tensor.shape,
            "typestr": tensor.dtype.str,
            "descr": tensor.dtype.descr,
            "data": (tensor.ptr, True),
            "strides": tensor.strides and tuple(n * size for n in tensor.strides),
        }


def _copy(tensor: Tensor, device: int, stream: Stream | None) -> Array:
    """Return a copy of a tensor whose capsule stays unconsumed and is collected."""
    # A tensor of the runtime itself may have work pending, which its producer
    # ordered before our stream only.
    _native.mem_wait(tensor.ptr, -1)
    copied = np.array(_Foreign(tensor), order="C").view(tensor.dtype)
    return asarray(copied, device=device, stream=stream)


def _copy_here(tensor: Tensor, device: int, stream: Stream | None) -> Array:
    """Return a copy of a tensor on a device; its capsule goes back once the copy is done."""
    if tensor.strides is not None:
        raise ExchangeError(
            "the tensor is on a device and not in C order; let its own library make it contiguous",
            operation="import",
        )
    # The producer ordered it before the stream that it was asked with.
    where = current(stream)
    new = empty(tensor.shape, tensor.dtype, device)
    copy_bytes(where, new.ptr, tensor.ptr, tensor.nbytes)
    where.synchronize()
    return new
