"""Data buffers, sizes of element types, and half precision numbers: acl's small helpers."""

from __future__ import annotations

import itertools

import numpy as np

from .._runtime import runtime
from . import _codes as codes
from . import constants as c
from ._call import command
from ._table import refuse

__all__ = [
    "create_data_buffer",
    "data_type_size",
    "destroy_data_buffer",
    "float16_to_float",
    "float_to_float16",
    "get_data_buffer_addr",
    "get_data_buffer_size",
    "get_data_buffer_size_v2",
    "update_data_buffer",
]

_handles = itertools.count(0x10000, 0x10)
#: Address and size of each data buffer, by its handle.
_buffers: dict[int, tuple[int, int]] = runtime.keep("acl data buffers", {})

_SIZES = {
    c.ACL_FLOAT: 4,
    c.ACL_FLOAT16: 2,
    c.ACL_INT8: 1,
    c.ACL_INT32: 4,
    c.ACL_UINT8: 1,
    c.ACL_INT16: 2,
    c.ACL_UINT16: 2,
    c.ACL_UINT32: 4,
    c.ACL_INT64: 8,
    c.ACL_UINT64: 8,
    c.ACL_DOUBLE: 8,
    c.ACL_BOOL: 1,
    c.ACL_COMPLEX64: 8,
    c.ACL_COMPLEX128: 16,
    c.ACL_BF16: 2,
}


@command("hh", home="acl")
def create_data_buffer(pointer: int, size: int, /) -> int:
    """aclCreateDataBuffer: handle of an address and a size; the caller keeps ownership of the memory."""
    handle = next(_handles)
    _buffers[handle] = pointer, size
    return handle


def _known(handle: int) -> None:
    if handle not in _buffers:
        raise refuse(codes.INVALID_PARAM, f"no data buffer has the handle {handle:#x}")


@command("h", home="acl")
def destroy_data_buffer(handle: int, /) -> int:
    """aclDestroyDataBuffer: the memory is not freed."""
    _known(handle)
    del _buffers[handle]
    return 0


@command("hhh", home="acl")
def update_data_buffer(handle: int, pointer: int, size: int, /) -> int:
    """aclUpdateDataBuffer: set another address and size."""
    _known(handle)
    _buffers[handle] = pointer, size
    return 0


@command("h", home="acl")
def get_data_buffer_addr(handle: int, /) -> int:
    """aclGetDataBufferAddr: the address, 0 for an unknown handle."""
    return _buffers.get(handle, (0, 0))[0]


@command("h", home="acl")
def get_data_buffer_size(handle: int, /) -> int:
    """aclGetDataBufferSize: the size modulo 2**32, 0 for an unknown handle."""
    return _buffers.get(handle, (0, 0))[1] & 0xFFFFFFFF


@command("h", home="acl")
def get_data_buffer_size_v2(handle: int, /) -> int:
    """aclGetDataBufferSizeV2: the size, 0 for an unknown handle."""
    return _buffers.get(handle, (0, 0))[1]


@command("i", home="acl")
def data_type_size(data_type: int, /) -> int:
    """aclDataTypeSize: bytes of an element, 0 for an unknown type."""
    return _SIZES.get(data_type, 0)


@command("u", home="acl")
def float16_to_float(value: int, /) -> float:
    """aclFloat16ToFloat: the number that 16 bits stand for."""
    return float(np.uint16(value & 0xFFFF).view(np.float16))


def float_to_float16(value: float, /) -> int:
    """aclFloatToFloat16: the 16 bits of a number."""
    with np.errstate(over="ignore"):
        return int(np.float16(value).view(np.uint16))
