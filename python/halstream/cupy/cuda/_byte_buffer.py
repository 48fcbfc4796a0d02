"""A base class of objects that are writable buffers of signed bytes at an address.

Python classes can give the buffer protocol from CPython 3.12 on, and arrays of
ctypes give their bytes the format '<b', which memoryview cannot index. So the
class is made of a specification of CPython's C API.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

__all__ = ["ByteBuffer"]

_GETBUFFER = 1  # Py_bf_getbuffer
_DEFAULT, _BASETYPE = 1 << 18, 1 << 10  # flags of a type
_WITH_FORMAT = 4  # PyBUF_FORMAT


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


class _View(ctypes.Structure):
    """The beginning of a Py_buffer."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
    )


_format = ctypes.create_string_buffer(b"b")
_fill = ctypes.pythonapi.PyBuffer_FillInfo
_fill.argtypes = [
    ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int
]  # fmt: skip
_fill.restype = ctypes.c_int


def _give(exporter: Any, view: int, flags: int) -> int:
    # Called by CPython with the GIL; the view keeps the exporter, and so its memory, alive.
    # An exception could not leave this function: what is not initialized has no bytes.
    address, nbytes = exporter._bytes() if hasattr(exporter, "_ptr") else (0, 0)
    status = int(_fill(view, exporter, address, nbytes, 0, flags))
    if flags & _WITH_FORMAT:
        _View.from_address(view).format = ctypes.addressof(_format)
    return status


_getbuffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(_give)


def _make() -> tuple[Any, Any]:
    slots = (_Slot * 2)(_Slot(_GETBUFFER, ctypes.cast(_getbuffer, ctypes.c_void_p)), _Slot(0, None))
    name = f"{__name__}.ByteBuffer".encode()
    spec = _Spec(name, 0, 0, _DEFAULT | _BASETYPE, slots)
    from_spec = ctypes.pythonapi.PyType_FromSpec
    from_spec.argtypes, from_spec.restype = [ctypes.c_void_p], ctypes.py_object
    return from_spec(ctypes.byref(spec)), (spec, slots, name)


if TYPE_CHECKING:

    class ByteBuffer:
        """Subclasses have `_ptr`, and `_bytes`, which returns the address and how many bytes there are."""

        def __buffer__(self, flags: int, /) -> memoryview: ...

else:
    ByteBuffer, _made_of = _make()  # CPython may refer to what a type was made of
