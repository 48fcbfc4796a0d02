"""Memory shown to other libraries: DLPack, the array interfaces, the buffer protocol."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import TYPE_CHECKING, Any

from .. import _native
from .._core import _current, _hostfunc
from .._core._interop import backend_name
from .._core._lookup import PINNED
from .._core._reap import lent, take_back
from .._core._stream import Stream
from .._errors import InvalidHandleError, InvalidValueError, NotSupportedError
from .._runtime import runtime

if TYPE_CHECKING:
    from ._blocks import Memory

__all__ = ["CPU", "CUDA", "Exchange", "ExchangeError"]

# Device types of DLPack.
CPU, CUDA, CUDA_HOST, EXT_DEV = 1, 2, 3, 12
# Flags of a versioned tensor.
READ_ONLY, IS_COPIED = 1, 2

_capsule = _native.taking_objects("capsule")
_dlpack_lend = _native.raw("dlpack_lend")
_mem_wait = _native.raw("mem_wait")
_stream_wait_mem = _native.raw("stream_wait_mem")
tokens = itertools.count(1)
_types: dict[Any, int] = runtime.keep("DLPack's element types", {})
_HOST = (CPU, 0)
_BYTES = 1 | 8 << 8 | 1 << 16


class ExchangeError(InvalidValueError, BufferError):
    """Memory cannot be handed over, or taken, in the form that was asked for."""


NAME, VERSIONED = b"dltensor", b"dltensor_versioned"


@functools.cache
def _destructor() -> int:
    """Return the address of the function that is called when a capsule is collected."""
    return int(_native.dlpack_address(0))


def check_not_lent(memory: object) -> None:
    """Refuse to free memory that a consumer of a capsule still uses.

    Raises
    ------
    ExchangeError
        If another library still uses the memory.
    """
    take_back()
    if any(owner is memory for owner in lent.values()):
        raise ExchangeError(
            "another library still uses this memory, which it got through DLPack; delete its tensors first",
            operation="free",
        )


def _type_code(dtype: Any) -> int:
    """Return DLPack's code, bits and lanes of a dtype, packed."""
    kinds = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
    number = 4 if dtype.name == "bfloat16" else kinds.get(dtype.kind)
    if number is None or not dtype.isnative:
        raise ExchangeError(f"DLPack has no element type for {dtype}", operation="export")
    _types[dtype] = code = int(number | dtype.itemsize * 8 << 8 | 1 << 16)
    return code


def _tell(memory: Memory) -> None:
    """Tell the sanitizer, if one is on, of memory that another library may write to."""
    if _hostfunc.keep is not None:
        _native.check_exposed(memory.ptr, memory.nbytes)


class Exchange:
    """The protocols by which other libraries read an object's memory."""

    __slots__ = ()

    def _exposed(self) -> tuple[Memory, int, tuple[int, ...], Any]:
        """Return the memory, the address, the shape and the dtype (None: bytes)."""
        raise NotImplementedError

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device.

        Memory of the host backend is the CPU's, of every device of it.
        """
        return _place(self._exposed()[0], backend_name())

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule of the memory for another library, by DLPack.

        Parameters
        ----------
        stream : int, Stream or None
            Where the consumer will use it; that stream waits for the work
            that is pending on the memory. For CUDA memory None and 1 are the
            legacy default stream, 2 is the per-thread one, -1 asks for no
            order, and larger numbers are handles. For memory of the host it
            is None, and the call waits, as it does for pinned memory; or, among
            programs of this package, a `Stream`.
        max_version : tuple of int or None
            From (1, 0) on the capsule has a version and flags.
        dl_device : tuple of int or None
            Another device than the memory's is possible for a copy to the CPU.
        copy : bool or None
            True makes a copy, False never does.

        Raises
        ------
        BufferError
            If this cannot be done, with the reason.

        Notes
        -----
        The memory lives until the consumer gives the capsule's tensor back.
        Only declared work is waited for: copies, fills, and functions with
        their array arguments. Source: DLPack 1.0, the Python specification.
        """
        memory, ptr, shape, dtype = self._exposed()
        if not memory.ptr:
            raise ExchangeError("the memory was freed", operation="export")
        _tell(memory)
        owner: Any = memory
        name = backend_name()
        device = _HOST if name == "host" else _place(memory, name)
        versioned = max_version is not None and max_version[0] >= 1
        flags = READ_ONLY if memory.readonly else 0
        if copy or dl_device is not None:
            target = device if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
            if copy or target != device:
                if copy is False or target not in (device, (CPU, 0)):
                    raise ExchangeError(
                        f"the memory is on DLPack's device {device}; device {target} with copy={copy} is not possible",
                        operation="export",
                    )
                owner, ptr = _copied(self, target)
                device, flags = target, IS_COPIED
        if flags & READ_ONLY and not versioned:
            raise ExchangeError(
                "the memory is read-only, which a capsule without a version cannot say; ask with max_version=(1, 0)",
                operation="export",
            )
        # The common case, a consumer on the host, is one call of the extension. It
        # reads pinned memory as it is, too.
        wait = stream is None and device[0] in (CPU, CUDA_HOST)
        if not wait:
            _order(ptr, stream, device)
        if dtype is None:
            code = _BYTES
        elif (code := _types.get(dtype, 0)) == 0:
            code = _type_code(dtype)
        token = next(tokens)
        where = device[0] | device[1] << 32
        lengths = str(shape[0]) if len(shape) == 1 else " ".join(map(str, shape))
        try:
            while True:
                tensor = _dlpack_lend(token, ptr, code, where, flags, versioned, wait, lengths)
                if tensor:
                    break
                _mem_wait(ptr, -1)
        except RuntimeError as exc:
            raise _native.error(exc) from None
        if lent:
            take_back()
        lent[token] = owner
        return _capsule(tensor, versioned, _destructor())

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface, version 3; waits for the work pending on the memory.

        Only memory that the host can see has it.
        """
        memory, ptr, shape, dtype = self._exposed()
        if not _visible(memory):
            raise AttributeError(f"memory of the {backend_name()} backend cannot be seen by the host: use numpy()")
        _tell(memory)
        return {
            "version": 3,
            "shape": shape,
            "typestr": "|u1" if dtype is None else dtype.str,
            "descr": [("", "|u1")] if dtype is None else dtype.descr,
            "data": (_ready(memory, ptr), memory.readonly),
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return a NumPy array of the same memory; waits for the work pending on it."""
        import numpy as np

        memory = self._exposed()[0]
        if not _visible(memory):
            raise NotSupportedError("NumPy cannot see a device's memory: copy it with numpy()", operation="export")
        view = np.asarray(_Shown(self))
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ValueError(f"a conversion from {view.dtype} to {dtype} needs a copy")
            return view.astype(dtype)
        return view.copy() if copy else view

    def __buffer__(self, flags: int) -> memoryview:
        """Return the memory as a buffer; from Python 3.12 on `memoryview` asks for it."""
        if not _visible(self._exposed()[0]):
            raise ExchangeError("a device's memory is no buffer of the host", operation="export")
        return memoryview(self.__array__())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's array interface, version 3; only memory of a CUDA device has it.

        Its stream is the one that the consumer must wait for: None if no work
        is pending, else the device's current one, which waits for the work.
        """
        memory, ptr, shape, dtype = self._exposed()
        if backend_name() != "cuda" or _place(memory, "cuda")[0] != CUDA:
            raise AttributeError("this memory is not a CUDA device's")
        if not memory.ptr:
            raise ExchangeError("the memory was freed", operation="export")
        stream = None
        if _native.mem_pending(ptr):
            after = Stream._current(memory.device)
            _native.stream_wait_mem(after._id, ptr)
            stream = after.handle or 1  # 0 would be ambiguous
        return {
            "version": 3,
            "shape": shape,
            "typestr": "|u1" if dtype is None else dtype.str,
            "data": (0 if 0 in shape else ptr, memory.readonly),
            "strides": None,
            "stream": stream,
        }


class _Shown:
    """An object with the array interface only, so that NumPy uses no other protocol."""

    def __init__(self, owner: Exchange) -> None:
        self.owner = owner
        self.__array_interface__ = owner.__array_interface__


def _place(memory: Memory, backend: str) -> tuple[int, int]:
    if backend == "host":
        return _HOST
    if memory.kind == PINNED:
        return (CUDA_HOST if backend == "cuda" else CPU), 0
    return (CUDA if backend == "cuda" else EXT_DEV), memory.device


def _visible(memory: Memory) -> bool:
    return backend_name() == "host" or memory.kind == PINNED


def _ready(memory: Memory, ptr: int) -> int:
    """Wait for what is pending on memory of the host; return the address."""
    if not memory.ptr:
        raise ExchangeError("the memory was freed", operation="export")
    try:
        _mem_wait(ptr, -1)
    except RuntimeError as exc:
        raise _native.error(exc) from None
    return ptr


def _copied(source: Exchange, target: tuple[int, int]) -> tuple[Any, int]:
    """Return a copy on the host, or on the memory's own device, and its address."""
    memory, ptr, shape, dtype = source._exposed()
    if target == (CPU, 0) and _visible(memory):
        host = source.__array__(copy=True)
        return host, int(host.__array_interface__["data"][0])
    nbytes = math.prod(shape) * (1 if dtype is None else int(dtype.itemsize))
    return memory._duplicate(ptr, nbytes, target == (CPU, 0))


def _wrong_stream(stream: object) -> Exception:
    return ExchangeError(
        f"memory of the host has no streams for other libraries: ask with stream=None, not {stream!r}",
        operation="export",
    )


def _order(ptr: int, stream: Any, device: tuple[int, int]) -> None:
    """Order the consumer after the work that is pending on the memory."""
    try:
        if isinstance(stream, Stream):
            _stream_wait_mem(stream._id, ptr)
        elif device[0] == CPU:
            if stream is not None:
                raise _wrong_stream(stream)
            _mem_wait(ptr, -1)
        else:
            _order_by_number(ptr, stream, device)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def _order_by_number(ptr: int, stream: Any, device: tuple[int, int]) -> None:
    handle = 1 if stream is None else operator.index(stream)
    if handle == -1:
        return
    if handle <= 0:
        raise ExchangeError(
            f"stream {handle} says nothing in DLPack: 1 is the legacy default stream, 2 the "
            "per-thread default stream, -1 asks for no order",
            operation="export",
        )
    ordinal = _current.current_device() if device[0] == CUDA_HOST else device[1]
    try:
        consumer = Stream.from_handle(handle, ordinal)
    except InvalidHandleError:
        _mem_wait(ptr, -1)  # a stream of another library, on which this runtime cannot enqueue a wait
    else:
        _stream_wait_mem(consumer._id, ptr)
