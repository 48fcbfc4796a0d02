"""launch, and the arguments that it takes."""

from __future__ import annotations

import ctypes
from typing import Any

from ..._dialects._adapt import raising
from ..._dialects._kernel_arguments import Packed, address, enqueue, fitted, scalar
from ..._kernel._packing import shape_of
from ._arguments import checked
from ._buffer import Buffer
from ._errors import ERRORS
from ._launch_config import LaunchConfig
from ._module import Kernel
from ._stream import on_this_thread, stream_of

__all__ = ["launch"]

# What a kernel may be given of ctypes, with the kind of its value.
_CTYPES: dict[Any, str] = {
    **dict.fromkeys((ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64, ctypes.c_longlong), "i"),
    **dict.fromkeys((ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_ulonglong), "u"),
    ctypes.c_float: "f",
    ctypes.c_double: "f",
    ctypes.c_bool: "b",
}

_fitted, _enqueue, _shape = raising(ERRORS)(fitted), raising(ERRORS)(enqueue), raising(ERRORS)(shape_of)
_scalar = raising(ERRORS)(scalar)


def launch(stream: Any, config: LaunchConfig, kernel: Kernel, *kernel_args: Any) -> None:
    """cuda.core.launch (1.2.2): enqueue a kernel on a stream, or add it to the graph of a builder.

    Differences: a value that does not fit its parameter is a TypeError, such as a Python float for a ``float``.
    """
    checked(config, LaunchConfig, "config")
    checked(kernel, Kernel, "kernel")
    where = stream_of(stream, protocol=True)
    given = [_packed(value) for value in kernel_args]
    loaded = kernel._on(where._ordinal)
    shape = _shape(kernel._name, config._blocks, config.block)
    if config.shmem_size or config.is_cooperative or config.cluster is not None:
        shape = raising(ERRORS)(shape.with_options)(
            kernel._name, config.shmem_size, config.is_cooperative, config.cluster
        )
    _enqueue(kernel._name, loaded, on_this_thread(where), shape, _fitted(kernel._name, loaded, given))


def _packed(x: Any) -> Packed:
    """Return an argument of a kernel as a launch takes it.

    Raises
    ------
    TypeError
        If it is none.
    """
    if isinstance(x, Buffer):
        x._open()
        return address(x._ptr, x._size, x._block)
    kind = type(x)
    if kind in _CTYPES:
        return Packed(bytes(x), "-", _CTYPES[kind])
    number = _scalar(x, "ssize_t")
    if number is None:
        raise TypeError(f"the argument is of unsupported type: {kind}")
    return number


launch.__module__ = "halstream.cuda.core"
