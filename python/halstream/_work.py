"""What a stream does: Python functions, native functions, empty operations, delays."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from typing import Any

from . import _hostfunc, _native
from ._base import Base
from ._errors import InvalidValueError

_stream_nop = _native.raw("stream_nop")
_stream_native = _native.raw("stream_native")


class Work(Base):
    """The part of a stream that enqueues work of the program."""

    def call(
        self,
        function: Callable[..., object],
        /,
        *args: Any,
        reads: Iterable[Any] = (),
        writes: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        """Run a Python function in stream order, on another thread.

        An exception goes to `sys.unraisablehook`, is counted in `failures`,
        and later work still runs.

        Parameters
        ----------
        function : callable
            May not call the runtime (H3), but for opening a gate.
        *args, **kwargs
            Its arguments; they live until it has run. An `Array` arrives as a
            NumPy array on the host device; on a vendor device it is refused.
        reads, writes : iterable of buffers
            What it works on. Without, array arguments count as read.

        Notes
        -----
        Contract H1, H2, H3, M11.
        """
        _hostfunc.submit(self, function, args, kwargs, False, reads, writes)

    def call_checked(
        self,
        function: Callable[..., object],
        /,
        *args: Any,
        reads: Iterable[Any] = (),
        writes: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        """Like `call`, but the next `synchronize` of the stream raises the exception."""
        _hostfunc.submit(self, function, args, kwargs, True, reads, writes)

    def call_native(
        self,
        function: Any,
        argument: Any = None,
        *,
        reads: Iterable[Any] = (),
        writes: Iterable[Any] = (),
    ) -> None:
        """Run a C function ``void f(void *)`` in stream order, without Python's lock.

        Parameters
        ----------
        function : address, ctypes function, cffi function pointer or numba cfunc
        argument : int, ctypes object, Array, NumPy array or None
            What it is given; it lives until the function has run.
        reads, writes : iterable of buffers
            What it works on. Without, an array argument counts as read.

        Raises
        ------
        TypeError
            If `function` is no native function.

        Notes
        -----
        Contract M11, M12.
        """
        address = _function_address(function)
        value, ranges = _argument(argument)
        if reads or writes:
            ranges = _hostfunc.ranges(reads, writes)
        try:
            _stream_native(self._id, address, value, ranges)
        except RuntimeError as exc:
            raise self._fail(exc, "call_native") from None
        if not isinstance(function, int) or not isinstance(argument, (int, type(None))):
            _hostfunc.hold(self, function, argument)

    def nop(self) -> None:
        """Enqueue an operation that does nothing."""
        try:
            _stream_nop(self._id)
        except RuntimeError as exc:
            raise self._fail(exc, "nop") from None

    def delay(self, seconds: float) -> None:
        """Enqueue an operation that keeps the stream (and an engine) busy for a time."""
        if not 0 <= seconds <= 86400:
            raise InvalidValueError(f"delay takes 0 to 86400 seconds, not {seconds!r}")
        try:
            _native.stream_delay(self._id, int(seconds * 1e9))
        except RuntimeError as exc:
            raise self._fail(exc, "delay") from None


def _function_address(function: Any) -> int:
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if isinstance(function, ctypes._CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    address = getattr(function, "address", None)  # numba
    if isinstance(address, int):
        return address
    address = _cffi_address(function)
    if address is None:
        raise TypeError(
            f"call_native() takes the address of a C function, a ctypes or cffi function or a "
            f"numba cfunc, not {type(function).__name__}; give a Python function to call()"
        )
    return address


def _cffi_address(value: Any) -> int | None:
    cffi = sys.modules.get("_cffi_backend")
    if cffi is None or not isinstance(value, cffi._CDataBase):
        return None
    pointer = cffi.cast(cffi.new_primitive_type("uintptr_t"), value)
    return int(pointer)


def _argument(argument: Any) -> tuple[int, str]:
    """Return what the function is given, and what that says of memory."""
    if argument is None:
        return 0, ""
    if isinstance(argument, int):
        return argument, ""
    if isinstance(argument, ctypes._SimpleCData) and isinstance(argument, ctypes.c_void_p):
        return argument.value or 0, ""
    if isinstance(argument, (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData)):
        return ctypes.addressof(argument), ""
    address = _cffi_address(argument)
    if address is not None:
        return address, ""
    from ._memory import address_of

    start, size = address_of(argument)
    return start, f"r:{start}:{size}"
