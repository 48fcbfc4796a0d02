"""What functions on streams declare to read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from .._errors import InvalidValueError
from ._lookup import address_of

__all__ = ["Declared", "accesses", "account", "pieces"]

#: Of an array with more pieces than this all bytes from the lowest to the highest count.
MOST: Final = 4096


class Declared:
    """A function with what it works on; see `accesses`."""

    __slots__ = ("__wrapped__", "function", "reads", "writes")

    def __init__(self, function: Callable[..., object], reads: tuple[Any, ...], writes: tuple[Any, ...]) -> None:
        self.function = self.__wrapped__ = function
        self.reads = reads
        self.writes = writes

    def __call__(self, /, *args: Any, **kwargs: Any) -> object:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<accesses of {self.function!r}: reads {len(self.reads)}, writes {len(self.writes)}>"


def accesses(function: Callable[..., Any], /, reads: Iterable[Any] = (), writes: Iterable[Any] = ()) -> Declared:
    """Return a function that says what it works on, for every call that enqueues one.

    Parameters
    ----------
    function : callable
        Called with the arguments that the stream gives it.
    reads, writes : iterable of buffers
        What it reads and writes, as for `Stream.call`. Nothing is an answer,
        too: the function then works on no memory.

    Returns
    -------
    callable
        To be given to `Stream.call`, `call_many`, or what a dialect has.

    Raises
    ------
    TypeError
        If `function` cannot be called, or an object has no memory.
    InvalidValueError
        If what is to be written is read-only.

    Notes
    -----
    Contract M11, V20. ``reads=`` and ``writes=`` of the call itself take precedence.

    Examples
    --------
    >>> import halstream as hs
    >>> stream, x = hs.Stream(), hs.zeros(4)
    >>> view = x._as_host()
    >>> stream.call(hs.accesses(lambda: view.fill(1), writes=[x]))
    >>> stream.synchronize()
    """
    if not callable(function):
        raise TypeError(f"accesses() takes a function, not {type(function).__name__}")
    declared = Declared(function, tuple(reads), tuple(writes))
    account(declared.reads, declared.writes)  # what is wrong is an error here
    return declared


Pieces = Iterator[tuple[int, int, int, int]]
_arrays: tuple[tuple[type, Callable[[Any], Pieces]], ...] = ()


def add_arrays(cls: type, memory: Callable[[Any], Pieces]) -> None:
    """Have a dialect's arrays, which are no buffers of Python, count; `memory` yields that of one as `pieces` does."""
    global _arrays
    _arrays = (*_arrays, (cls, memory))


def pieces_of_array(value: Any) -> Pieces | None:
    """Return the memory of an array of a dialect, None for another object."""
    for cls, memory in _arrays:
        if isinstance(value, cls):
            return memory(value)
    return None


def pieces(buffer: Any, *, writable: bool = False) -> Pieces:
    """Yield the memory of a buffer: start and bytes of its first piece, bytes from one to the next, their count.

    Raises
    ------
    TypeError
        If it has no memory.
    InvalidValueError
        If it is read-only where it is to be written.
    """
    found = pieces_of_array(buffer)
    if found is not None:
        yield from found
        return
    strides: Any = None if getattr(buffer, "ptr", None) is not None else getattr(buffer, "strides", None)
    interface: Any = None if strides is None else getattr(buffer, "__array_interface__", None)
    if interface is None:
        start, nbytes = address_of(buffer, writable=writable)
        yield start, nbytes, nbytes, 1
        return
    address, read_only = interface["data"]
    if writable and read_only:
        raise InvalidValueError("the target is read-only")
    if buffer.flags.c_contiguous:
        yield address, buffer.nbytes, buffer.nbytes, 1
        return
    if 0 in buffer.shape:
        yield int(address), 0, 0, 1
        return
    yield from strided(int(address), int(buffer.dtype.itemsize), tuple(buffer.shape), tuple(strides))


def strided(
    start: int, size: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the memory of elements of `size` bytes, the first of which is at `start`, as `pieces` does."""
    axes = []
    for count, step in zip(shape, strides, strict=True):
        if step < 0:
            start += (count - 1) * step
        if count > 1 and step:
            axes.append((abs(step), count))
    axes.sort()
    whole = size + sum(step * (count - 1) for step, count in axes)
    # Axes along which there are no gaps belong to the piece itself.
    while axes and axes[0][0] <= size:
        step, count = axes.pop(0)
        size += step * (count - 1)
    total = 1
    for _, count in axes:
        total *= count
    if total == 1 or total > MOST:
        yield start, whole, whole, 1
        return
    (pitch, count), *outer = axes
    starts = [start]
    for step, n in outer:
        starts = [at + number * step for at in starts for number in range(n)]
    for at in starts:
        yield at, size, pitch, count


def account(reads: Iterable[Any], writes: Iterable[Any]) -> str:
    """Return what the extension takes as an account of reads and writes."""
    parts = [_text("r", *piece) for buffer in reads for piece in pieces(buffer)]
    parts += [_text("w", *piece) for buffer in writes for piece in pieces(buffer, writable=True)]
    return " ".join(parts)


def _text(kind: str, start: int, size: int, pitch: int, count: int) -> str:
    return f"{kind}:{start}:{size}" if count == 1 else f"{kind}:{start}:{size}:{pitch}:{count}"
