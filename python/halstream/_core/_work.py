"""What a stream does: Python functions, native functions, empty operations, delays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import HalError, InvalidValueError, NotSupportedError
from . import _hostfunc, _interop
from ._base import Base
from ._declared import Declared
from ._lookup import DEVICE, address_of, kind_of

if TYPE_CHECKING:
    from .._kernel import Kernel

_stream_nop = _native.raw("stream_nop")
_stream_native = _native.raw("stream_native")
# ctypes and cffi are looked up here and never loaded: while they are not loaded, no object of theirs can be given.
_modules = sys.modules


class Work(Base):
    """The part of a stream that enqueues work of the program."""

    def call(
        self,
        function: Callable[..., object],
        /,
        *args: Any,
        reads: Iterable[Any] | None = None,
        writes: Iterable[Any] | None = None,
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
            What it works on; strided arrays count with their elements only.
            Without both, array arguments count as read. `halstream.accesses`
            says it with the function.

        Raises
        ------
        TypeError
            If `function` cannot be called.
        NotSupportedError
            If an argument is memory of a vendor's device.
        ClosedError
            If the stream is closed.

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
        reads: Iterable[Any] | None = None,
        writes: Iterable[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Like `call`, but the next `synchronize` of the stream raises the exception.

        Raises
        ------
        TypeError, NotSupportedError, ClosedError
            As for `call`.
        """
        _hostfunc.submit(self, function, args, kwargs, True, reads, writes)

    def call_many(self, calls: Iterable[Callable[..., object] | tuple[Any, ...]], /) -> None:
        """Enqueue several Python functions in one step; each of them is like one of `call`.

        Many short functions cost less so. Other threads' work on the stream
        comes before all of them or after all of them, but for streams whose
        operations a schedule, a listener or another backend takes one by one.

        Parameters
        ----------
        calls : iterable of callable or tuple
            A function without arguments, or a tuple of a function and its
            arguments. Nothing is enqueued unless all of them are.

        Raises
        ------
        TypeError
            For an element that is neither, or no iterable.

        Notes
        -----
        Contract H1, H2, H3, H6.
        """
        if not isinstance(calls, Iterable):
            raise TypeError(f"call_many() takes an iterable of functions, not {type(calls).__name__}")
        _hostfunc.submit_many(self, calls)

    def call_native(
        self,
        function: Any,
        argument: Any = None,
        *,
        reads: Iterable[Any] | None = None,
        writes: Iterable[Any] | None = None,
    ) -> None:
        """Run a C function ``void f(void *)`` in stream order, without Python's lock.

        Parameters
        ----------
        function : address, ctypes function, cffi function pointer or numba cfunc
        argument : int, ctypes object, Array, NumPy array or None
            What it is given; it lives until the function has run. An `Array`
            of a vendor's device is refused, as the host cannot see its memory.
        reads, writes : iterable of buffers
            What it works on. Without both, an array argument counts as read.

        Raises
        ------
        TypeError
            If `function` is no native function.
        NotSupportedError
            If the argument is memory of a vendor's device.

        Notes
        -----
        Contract M11, M12.
        """
        value, ranges = _argument(argument)
        said = _hostfunc.declared(function, reads, writes)
        if said is not None:
            ranges = said
        if isinstance(function, Declared):
            function = function.function
        address = _function_address(function)
        if _hostfunc.look is not None:
            ranges, _ = _hostfunc.look(function, (), {}, ranges, said is not None)
        try:
            _stream_native(self._id, address, value, ranges)
        except OverflowError:
            raise InvalidValueError(f"{address} or {value} is no address") from None
        except RuntimeError as exc:
            raise self._fail(exc, "call_native") from None
        if not isinstance(function, int) or not isinstance(argument, (int, type(None))):
            _hostfunc.hold(self, function, argument)

    def launch(
        self,
        kernel: Kernel,
        grid: Any,
        block: Any,
        /,
        *args: Any,
        shared: int = 0,
        cooperative: bool = False,
        cluster: Any = None,
    ) -> None:
        """Run a kernel in stream order, in its form for the stream's backend.

        Parameters
        ----------
        kernel : Kernel
        grid, block : int or tuple of 1 to 3 int
            Blocks of the launch and threads of a block, within the vendor's
            limits on every device.
        *args
            As the kernel declares them: numbers for scalars; for pointers an
            `Array` of the stream's device, a NumPy array in pinned memory, or
            None. Their memory lives until the kernel has run.
        shared : int, default 0
            Bytes of dynamic shared memory of each block, also more than the
            48 KiB that a CUDA program must ask for with an attribute. A host
            form is not given any.
        cooperative : bool, default False
            Whether all blocks must run at the same time, as a grid-wide
            barrier needs; a launch of more blocks than fit is refused.
        cluster : int or tuple of 1 to 3 int, optional
            Blocks of a cluster, which share memory on a device of compute
            capability 9.0 or above; at most 8, and each dimension divides
            that of the grid.

        Raises
        ------
        KernelArgumentError
            If the count, a dtype or the size of the launch does not fit.
        WrongDeviceError
            If an array is on another device.
        NotSupportedError
            If the kernel has no form for this backend.
        CompileError
            If its CUDA form has errors, at the first launch on a device.

        Notes
        -----
        Contract M11, K1, K2. A Python host form that raises gives its exception
        to the stream's next `synchronize`; a CUDA form that faults loses the
        device (`DeviceLostError`).
        """
        enqueue = getattr(kernel, "_launch", None)
        if enqueue is None:
            raise TypeError(f"launch() takes a Kernel, not {type(kernel).__name__}")
        try:
            if shared or cooperative or cluster is not None:
                enqueue(self, grid, block, args, (shared, cooperative, cluster))
            else:
                enqueue(self, grid, block, args)
        except HalError as exc:
            raise self._fail(exc, "launch") from None

    def nop(self) -> None:
        """Enqueue an operation that does nothing.

        Raises
        ------
        ClosedError
            If the stream is closed.
        """
        try:
            _stream_nop(self._id)
        except RuntimeError as exc:
            raise self._fail(exc, "nop") from None

    def delay(self, seconds: float) -> None:
        """Enqueue an operation that keeps the stream (and an engine) busy for a time.

        Raises
        ------
        TypeError
            If `seconds` is no number.
        InvalidValueError
            If it is not from 0 to 86400.
        ClosedError
            If the stream is closed.
        """
        try:
            if not 0 <= seconds <= 86400:
                raise InvalidValueError(f"delay() takes 0 to 86400 seconds, not {seconds!r}")
        except TypeError:
            raise TypeError(f"delay() takes a number of seconds, not {type(seconds).__name__}") from None
        try:
            _native.stream_delay(self._id, int(seconds * 1e9))
        except RuntimeError as exc:
            raise self._fail(exc, "delay") from None


_hostfunc.set_stream_class(Work)


def native_address(function: Any) -> int | None:
    """Return the address of a native function, None if it is something else."""
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    ctypes: Any = _modules.get("ctypes")
    if ctypes is not None and isinstance(function, ctypes._CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    address = getattr(function, "address", None)  # numba
    if isinstance(address, int):
        return address
    return _cffi_address(function)


def _function_address(function: Any) -> int:
    address = native_address(function)
    if address is None:
        raise TypeError(
            f"call_native() takes the address of a C function, a ctypes or cffi function or a "
            f"numba cfunc, not {type(function).__name__}; give a Python function to call()"
        )
    return address


def _ctypes_address(value: Any) -> int | None:
    ctypes: Any = _modules.get("ctypes")
    if ctypes is None:
        return None
    if isinstance(value, ctypes._SimpleCData) and isinstance(value, ctypes.c_void_p):
        return value.value or 0
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData)):
        return int(ctypes.addressof(value))
    if isinstance(value, (ctypes._Pointer, ctypes._CFuncPtr)):  # what it points to
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    return None


def _cffi_address(value: Any) -> int | None:
    cffi = _modules.get("_cffi_backend")
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
    address = _ctypes_address(argument)
    if address is None:
        address = _cffi_address(argument)
    if address is not None:
        return address, ""
    start, size = address_of(argument)
    if size and _interop.backend_name() != "host" and kind_of(start) == DEVICE:
        raise NotSupportedError(
            "a native function runs on the host and cannot see a device's memory: launch a "
            "kernel, or copy to pinned memory first",
            operation="call_native",
        )
    if _hostfunc.keep is not None:
        _hostfunc.keep(argument)
    return start, f"r:{start}:{size}"
