"""Kernels: one computation with a form for each kind of device, and a declaration of its arguments."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _memory, _native
from .._core import _hostfunc
from .._core._device import Device, ordinal
from .._core._interop import backend_name
from .._core._stream import native_address
from .._errors import InvalidValueError, KernelArgumentError, NotSupportedError, WrongDeviceError
from .._memory._array import Array
from .._memory._values import view as array_over
from ._packing import Packer, Shape, shape_of
from ._signature import Parameter, Wrong, parse, scalar

if TYPE_CHECKING:
    from .._core._stream import Stream
    from ._launch import Loaded
    from ._nvrtc import Compiled

__all__ = ["Kernel", "Parameter"]

Arguments = tuple[list[Any], list[Any], list[Any]]


class Kernel:
    """A computation that `Stream.launch` runs, with a form for each kind of device.

    Parameters
    ----------
    cuda : str or bytes
        CUDA C++, compiled with NVRTC at first use; PTX; or a cubin. Its kernel
        is brought to a device at the first launch there and stays.
    host : callable or native function
        What the host device runs, once for each launch, instead of the CUDA
        form: it executes source and PTX itself, each thread of them, and checks
        every access, but slower than a function does. A Python callable is
        given ``(grid, block, *args)``: two tuples of three, scalars as NumPy
        scalars, arrays as NumPy arrays, read-only where they are declared
        ``in``. A native function (an address, ctypes, cffi, or a numba
        ``cfunc``) is ``void f(struct launch *)`` with
        ``struct launch { uint32_t grid[3], block[3]; void **args; }``, where
        ``args[i]`` points to the value of argument i.
    name : str
        The kernel's name in the CUDA source, or an instance of a template,
        ``'scale<float>'``. Without `cuda` it is for messages only.
    signature : str or sequence of str
        The parameters: ``'float32 a, in float32 *x, inout float32 *y, uint32 n'``.
        Types are NumPy's names. A pointer says whether the kernel reads
        (``in``), writes (``out``) or does both; ``void *`` takes every dtype.
        ``bytes24 box`` is a struct of 24 bytes that is passed by value: its
        argument is bytes or an object with a buffer of that size, such as a
        NumPy scalar of a structured dtype or a ``ctypes.Structure``.
    options : sequence of str
        Further options for NVRTC.

    Raises
    ------
    InvalidValueError
        If there is no form at all, no name, or the signature cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> import halstream as hs
    >>> def scale(grid, block, x, factor):
    ...     x *= factor
    >>> kernel = hs.Kernel(host=scale, name="scale", signature="inout float32 *x, float32 factor")
    >>> x = hs.asarray(np.arange(4, dtype=np.float32))
    >>> s = hs.Stream()
    >>> s.launch(kernel, 1, 4, x, 2.0)
    >>> x.numpy(s)
    array([0., 2., 4., 6.], dtype=float32)
    """

    def __init__(
        self,
        cuda: str | bytes | None = None,
        host: Any = None,
        *,
        name: str = "",
        signature: str | Sequence[str],
        options: Sequence[str] = (),
    ) -> None:
        if cuda is None and host is None:
            raise InvalidValueError("a kernel needs cuda= (source, PTX or cubin), host=, or both")
        if not isinstance(cuda, (str, bytes, type(None))):
            raise TypeError(f"cuda= is source or PTX as text, or a cubin, not {type(cuda).__name__}")
        self.name: str | Any = name or getattr(host, "__name__", "")
        if cuda is not None and not name:
            raise InvalidValueError("name= must say which kernel of the CUDA program is meant")
        self.parameters: tuple[Parameter, ...] = parse(signature)
        self.options: tuple[str, ...] = (options,) if isinstance(options, str) else tuple(options)
        self._cuda, self._form = _form(cuda)
        self._host = host
        self._native_host = False if host is None else native_address(host) is not None
        if host is not None and not self._native_host and not callable(host):
            raise TypeError(f"host= is a function or a native function, not {type(host).__name__}")
        self._compiled: dict[tuple[str, int], Compiled] = {}  # by architecture and driver
        self._packer = Packer(self.parameters)
        self._loaded: dict[int, Loaded] = {}  # by device

    @property
    def forms(self) -> tuple[str, ...]:
        """Backends that it has a form for; the host device runs the CUDA form, too, where that is no cubin."""
        found = {"cuda": self._cuda, "host": self._cuda if self._on_host else self._host}
        return tuple(backend for backend, form in found.items() if form is not None)

    @property
    def _on_host(self) -> bool:
        """Whether the host device runs the CUDA form."""
        return self._host is None and self._form != "cubin"

    @property
    def signature(self) -> str:
        """The parameters as text."""
        return ", ".join(map(str, self.parameters))

    def __repr__(self) -> str:
        return f"<halstream.Kernel {self.name}({self.signature}) for {', '.join(self.forms)}>"

    def compile(self, architecture: str) -> Compiled:
        """Return the CUDA form for an architecture; needs NVRTC, but no GPU.

        Parameters
        ----------
        architecture : str
            ``'compute_80'`` for PTX, ``'sm_80'`` for a cubin. PTX and cubins
            that were given come back as they are.

        Returns
        -------
        Compiled
            ``code`` (bytes), ``entry`` (the name in it), ``architecture``, ``log``.

        Raises
        ------
        CompileError
            If the source has errors; `CompileError.log` is the compiler's log.
        NotSupportedError
            If the kernel has no CUDA form.
        BackendAbsentError
            If NVRTC is not installed.

        Notes
        -----
        Results are kept in the folder HALSTREAM_CACHE_DIR, by default in the
        user's cache folder, by source, name, options, architecture and
        compiler version.
        """
        return self._compile(architecture, 0)

    def _compile(self, architecture: str, driver: int) -> Compiled:
        """Return what `compile` does, made for the major version of a driver; 0 for any."""
        from . import _nvrtc

        if self._cuda is None:
            raise NotSupportedError(f"kernel {self.name} has no cuda form", operation="compile")
        if self._form != "source":
            return _nvrtc.Compiled(self._cuda, self.name, architecture, "")
        found = self._compiled.get((architecture, driver))
        if found is None:
            found = _nvrtc.compile_source(self._cuda.decode(), self.name, architecture, self.options, driver)
            self._compiled[architecture, driver] = found
        return found

    def load(self, device: Device | int | str | None = None) -> None:
        """Bring the kernel to a device now, not at its first launch there.

        A CUDA driver may wait for all work of a device before it loads a program, also
        for a stream that waits for the host: load a kernel before such work begins.
        Host forms need no loading.

        Parameters
        ----------
        device : Device, int or str, optional
            The current device by default.

        Raises
        ------
        CompileError
            If its CUDA form has errors.
        NotSupportedError
            If it has no form for the backend in use.
        InvalidDeviceError
            If there is no such device.
        HalError
            If the device cannot run it.
        """
        backend, number = self._check_form("load"), ordinal(device)
        if backend != "host" or self._on_host:
            from . import _launch

            _launch.on_device(self, number)

    def _check_form(self, operation: str) -> str:
        """Return the backend in use, for which the kernel must have a form."""
        backend = backend_name()
        if backend not in self.forms:
            raise NotSupportedError(
                f"kernel {self.name} has no form for the {backend} backend, only for "
                f"{' and '.join(self.forms)}; give Kernel({backend}=...)"
                if backend in ("cuda", "host")
                else f"kernels have no form for the {backend} backend",
                operation=operation,
            )
        return backend

    def _launch(
        self, stream: Stream, grid: Any, block: Any, args: tuple[Any, ...], options: tuple[Any, ...] = ()
    ) -> None:
        """Enqueue a launch; options are the bytes of shared memory, whether it is cooperative, and a cluster."""
        shape = shape_of(self.name, grid, block)
        if options:
            shape = shape.with_options(self.name, *options)
        loaded = self._loaded.get(stream._ordinal)
        if loaded is not None and loaded.launch(self, stream, shape, args):
            return
        backend = self._check_form("launch")
        values, reads, writes = self._check(stream, args)
        if backend != "host" or self._on_host:
            from . import _launch

            _launch.launch(self, stream, shape, values, reads, writes)
        elif self._native_host:
            argument = _Launch.of(shape, values)
            stream.call_native(self._host, argument, reads=reads, writes=writes)
        else:
            views = [_view(p, value) if p.pointer else value for p, value in zip(self.parameters, values, strict=True)]
            # Checked: a kernel that fails is an error of its stream, as on a device.
            given = (shape.grid, shape.block, *views)
            _hostfunc.enqueue(stream, self._host, given, {}, True, _account(reads, writes))

    def _check(self, stream: Stream, args: tuple[Any, ...]) -> Arguments:
        """Return the values, and the arrays that are read and those that are written."""
        if len(args) != len(self.parameters):
            raise KernelArgumentError(
                f"kernel {self.name} takes {len(self.parameters)} arguments ({self.signature}), not {len(args)}",
                operation="launch",
            )
        values: list[Any] = []
        reads: list[Any] = []
        writes: list[Any] = []
        for number, (parameter, value) in enumerate(zip(self.parameters, args, strict=True), 1):
            try:
                if parameter.pointer:
                    value = _array(parameter, value, stream)
                    if value is not None and value.nbytes:
                        if parameter.direction != "out":
                            reads.append(value)
                        if parameter.direction != "in":
                            writes.append(value)
                else:
                    value = scalar(parameter, value)
            except Wrong as exc:
                raise exc.error(
                    f"kernel {self.name}, argument {number} ({parameter}): {exc}", operation="launch"
                ) from None
            values.append(value)
        return values, reads, writes


class _Launch(ctypes.Structure):
    """The arguments of a native host form; keeps the arrays alive."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("args", ctypes.c_void_p),
    )

    @classmethod
    def of(cls, shape: Shape, values: Iterable[Any]) -> _Launch:
        values = list(values)
        # Each value in its own eight-byte aligned piece, as a NumPy array without dimensions.
        cells = [
            np.array(value) if isinstance(value, np.generic) else np.array(_pointer(value), np.uint64)
            for value in values
        ]
        table = (ctypes.c_void_p * max(1, len(cells)))(*(c.ctypes.data for c in cells))
        launch = cls(shape.grid, shape.block, ctypes.addressof(table))
        launch.keep = (values, cells, table)
        return launch


def _form(cuda: str | bytes | None) -> tuple[bytes | None, str]:
    """Return a CUDA program as bytes, and whether it is source, PTX or a binary."""
    if cuda is None:
        return None, ""
    code = cuda.encode() if isinstance(cuda, str) else cuda
    # ELF is a cubin; the other is the magic number of several programs in one file.
    if code.startswith((b"\x7fELF", b"\x50\xed\x55\xba")):
        return code, "cubin"
    if re.search(rb"(?m)^\s*\.version\s+\d", code) and re.search(rb"(?m)^\s*\.target\s", code):
        return code.rstrip(b"\0") + b"\0", "ptx"
    try:
        code.decode()
    except UnicodeDecodeError:
        raise InvalidValueError("cuda= is neither text nor a cubin") from None
    return code, "source"


def _usual(parameter: Parameter, value: Any, stream: Stream) -> bool:
    """Return True for valid arguments of the most common kind, which need no further check."""
    kind = type(value)
    if kind is Array:
        memory = value._memory
        if not memory.ptr or memory.foreign or (memory.readonly and parameter.direction != "in"):
            return False
        address = value.ptr
    elif kind is np.ndarray:
        flags = value.flags
        if not flags.c_contiguous or not (flags.writeable or parameter.direction == "in"):
            return False
        address = value.__array_interface__["data"][0]
    else:
        return False
    return (parameter.dtype is None or value.dtype == parameter.dtype) and bool(
        _native.stream_reaches(stream._id, address, value.nbytes)
    )


def _array(parameter: Parameter, value: Any, stream: Stream) -> Any:
    """Return a checked array argument; None stands for a null pointer."""
    if value is None:
        return None
    if _usual(parameter, value, stream):
        return value  # every other kind of argument is checked here
    if not isinstance(value, (Array, np.ndarray, _memory.Memory)):
        hint = "; from_dlpack() makes an Array of it" if hasattr(value, "__dlpack__") else ""
        raise Wrong(f"it takes an Array or a NumPy array in pinned memory, not {type(value).__name__}{hint}")
    dtype = getattr(value, "dtype", None)
    if parameter.dtype is not None and dtype != parameter.dtype:
        raise Wrong(f"the array has dtype {dtype or 'void'}")
    if value.nbytes == 0:
        return value
    memory = getattr(value, "_memory", value)
    if isinstance(memory, _memory.Memory) and not memory.ptr:
        raise Wrong("its memory was freed", InvalidValueError)
    try:
        start, size = _memory.address_of(value, writable=parameter.direction != "in")
    except InvalidValueError as exc:
        raise Wrong(str(exc)) from None
    kind, block, length, device = _memory.lookup(start)
    if isinstance(memory, _memory.Memory) and memory.foreign:
        kind, block, length, device = memory.kind, memory.ptr, memory.nbytes, memory.device
    if kind == _memory.PAGEABLE:
        raise Wrong("a device cannot see pageable memory; copy it to an Array, or use pinned_empty")
    if start + size > block + length:
        raise Wrong(f"{size} bytes at {start:#x} end behind their block", InvalidValueError)
    if device not in (-1, stream._ordinal):
        raise Wrong(
            f"the array is on device {device}, the stream on {stream._ordinal}",
            WrongDeviceError,
        )
    if isinstance(memory, _memory.Memory) and memory.foreign:
        memory.record_stream(stream)
    return value


def _account(reads: Sequence[Any], writes: Sequence[Any]) -> str:
    """Return what `_hostfunc.ranges` does, for arrays that were checked already."""
    if _hostfunc.keep is not None or any(type(array) is not Array for array in (*reads, *writes)):
        return _hostfunc.ranges(reads, writes)
    parts = [f"r:{array.ptr}:{array.nbytes}" for array in reads]
    return " ".join(parts + [f"w:{array.ptr}:{array.nbytes}" for array in writes])


def _pointer(value: Any) -> int:
    return 0 if value is None or not value.nbytes else _memory.address_of(value)[0]


def _view(parameter: Parameter, value: Any) -> Any:
    """Return an array argument as the host form gets it."""
    if value is None:
        return None
    if isinstance(value, Array):
        view = value._as_host().view()
    elif isinstance(value, np.ndarray):
        view = value.view()
    else:
        view = array_over(value, value.ptr, (value.nbytes,), np.dtype(np.uint8))
    if parameter.direction == "in":
        view.flags.writeable = False
    return view
