"""Tensors of other libraries: what their descriptions may say."""

from __future__ import annotations

import ctypes
import re
import struct
from typing import Any

import halstream as hs
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("backend")


def name_of(capsule: Any) -> str:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return str(function(capsule).decode())


#: The fields of a tensor that no memory can have, and a part of the error's text.
IMPOSSIBLE: dict[str, tuple[dict[str, int], str]] = {
    "no lengths": ({"shape": 0}, "1 dimensions, and the address of their lengths is NULL"),
    "a negative number of dimensions": ({"ndim": -1}, "it has -1 dimensions"),
    "more dimensions than any array": ({"ndim": 1 << 20}, "it has 1048576 dimensions"),
    "an offset past all addresses": ({"offset": 1 << 63}, "do not lie in memory"),
    "an offset that wraps around": ({"offset": (1 << 64) - 8}, "do not lie in memory"),
    "no memory": ({"data": 0}, "do not lie in memory"),
    "lengths that cannot be read": ({"shape": 8}, "its lengths at 0x8 cannot be read"),
    "strides that cannot be read": ({"strides": 8}, "its strides at 0x8 cannot be read"),
    "several lanes": ({"lanes": 2}, "not one number of whole bytes"),
    "no lanes": ({"lanes": 0}, "not one number of whole bytes"),
    "half bytes": ({"bits": 4}, "not one number of whole bytes"),
    "no bits": ({"bits": 0}, "not one number of whole bytes"),
    "bits of no dtype": ({"bits": 24}, "NumPy has no dtype"),
    "a code of no dtype": ({"code": 77}, "NumPy has no dtype"),
    "a device of another kind": ({"device": 8}, "a Metal device"),
}

#: Lengths and strides that no memory can have, and a part of the error's text.
IMPOSSIBLE_LENGTHS: dict[str, tuple[list[int], list[int] | None, str]] = {
    "a negative length": ([3, -1], None, "has a negative length"),
    "more elements than numbers": ([1 << 40, 1 << 40], None, "more bytes than any memory"),
    "more bytes than numbers": ([1 << 61, 1], None, "more bytes than any memory"),
    "more bytes in one place": ([1 << 40, 1 << 40], [0, 0], "more bytes than any memory"),
    "a stride below all addresses": ([2, 2], [-1 << 62, 1], "do not lie in memory"),
    "a stride past all addresses": ([2, 2], [1 << 62, 1], "do not lie in memory"),
}


def described(**changed: int) -> tuple[Any, Any]:
    """Return a capsule of a tensor with these fields, and what it points to."""
    values, lengths = np.zeros(8), (ctypes.c_int64 * 1)(8)
    fields = {
        "data": values.ctypes.data, "device": 1, "ndim": 1, "code": 2, "bits": 64, "lanes": 1,
        "shape": ctypes.addressof(lengths), "strides": 0, "offset": 0, **changed,
    }  # fmt: skip
    order = ("data", "device", "id", "ndim", "code", "bits", "lanes", "shape", "strides", "offset")
    tensor = ctypes.create_string_buffer(struct.pack("=Qiii2BHQQQ16x", *(fields.get(name, 0) for name in order)))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(tensor), b"dltensor", None), (values, lengths, tensor)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_M20_a_tensor_that_cannot_be_is_refused_with_its_fault(name: str) -> None:
    changed, text = IMPOSSIBLE[name]
    capsule, kept = described(**changed)
    with pytest.raises(BufferError, match=re.escape(text)):
        hs.from_dlpack(capsule)
    assert name_of(capsule) == "dltensor"  # not taken: it stays its producer's
    del kept


@pytest.mark.parametrize("name", IMPOSSIBLE_LENGTHS)
def test_M20_lengths_that_cannot_be_are_refused(name: str) -> None:
    shape, strides, text = IMPOSSIBLE_LENGTHS[name]
    lengths = (ctypes.c_int64 * len(shape))(*shape)
    steps = (ctypes.c_int64 * len(shape))(*(strides or shape))
    capsule, kept = described(
        ndim=len(shape), shape=ctypes.addressof(lengths), strides=ctypes.addressof(steps) if strides else 0
    )
    with pytest.raises(BufferError, match=re.escape(text)):
        hs.from_dlpack(capsule)
    assert name_of(capsule) == "dltensor"
    del kept
