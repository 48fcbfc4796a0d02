"""cupy.cuda.runtime: copies and fills by addresses."""

from __future__ import annotations

from typing import Any, NoReturn

from ... import _core as core
from ... import _memory
from ..._dialects._adapt import raising
from ..._memory import _rawmem
from ._errors import ERRORS, c_int, intptr, size_t, unsupported
from ._handles import Handle

__all__ = [
    "memcpy",
    "memcpy2D",
    "memcpy2DAsync",
    "memcpy2DFromArray",
    "memcpy2DFromArrayAsync",
    "memcpy2DToArray",
    "memcpy2DToArrayAsync",
    "memcpy3D",
    "memcpy3DAsync",
    "memcpyAsync",
    "memcpyPeer",
    "memcpyPeerAsync",
    "memset",
    "memsetAsync",
]

_ARRAYS = "CUDA arrays, the memory of textures, are not built yet"


def _check(dst: int, src: int, size: int, kind: Any) -> None:
    """Refuse a direction that is none, or not the one of the addresses."""
    number = c_int(kind)
    if not 0 <= number <= 4:
        raise ERRORS["invalid_value"](f"{kind} is no direction of a copy", code=21)
    if size and number < 4:
        # 0 to 3 say in two bits where target and source are.
        to_device, from_device = number in (1, 3), number in (2, 3)
        _rawmem.check_direction(dst, src, to_device, from_device)


@raising(ERRORS)
def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    """cupy.cuda.runtime.memcpy (14.2.0): on the legacy default stream, and waits."""
    target, source, nbytes = intptr(dst), intptr(src), size_t(size)
    _check(target, source, nbytes, kind)
    _memory.copy_blocking(target, source, nbytes)


@raising(ERRORS)
def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """cupy.cuda.runtime.memcpyAsync (14.2.0)."""
    target, source, nbytes, handle = intptr(dst), intptr(src), size_t(size), intptr(stream)
    _check(target, source, nbytes, kind)
    _memory.copy_as(_memory.ASYNC, Handle.find(handle), target, source, nbytes)


def _ends(dst: int, dstDevice: int, src: int, srcDevice: int) -> tuple[int, int, int, int]:
    ends = []
    for role, address, device in (("target", dst, dstDevice), ("source", src, srcDevice)):
        where, owner = core.ordinal(c_int(device)), _memory.lookup(intptr(address))[3]
        if owner not in (-1, where):
            raise ERRORS["invalid_value"](f"the {role} is memory of device {owner}, not of {where}")
        ends += [intptr(address), where]
    return ends[0], ends[1], ends[2], ends[3]


@raising(ERRORS)
def memcpyPeer(dst: int, dstDevice: int, src: int, srcDevice: int, size: int) -> None:
    """cupy.cuda.runtime.memcpyPeer (14.2.0): in order with the default streams of both devices."""
    nbytes = size_t(size)
    _rawmem.copy_peer(*_ends(dst, dstDevice, src, srcDevice), nbytes)


@raising(ERRORS)
def memcpyPeerAsync(dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None:
    """cupy.cuda.runtime.memcpyPeerAsync (14.2.0)."""
    nbytes = size_t(size)
    target, _, source, _ = _ends(dst, dstDevice, src, srcDevice)
    _memory.copy(Handle.find(stream), target, source, nbytes)


def _rows(
    stream: core.Stream | None, dst: int, dpitch: int, src: int, spitch: int, width: int, height: int,
    kind: int,
) -> None:  # fmt: skip
    target, source = intptr(dst), intptr(src)
    dp, sp, w, h = size_t(dpitch), size_t(spitch), size_t(width), size_t(height)
    if w > dp or w > sp:
        raise ERRORS["invalid_value"](f"rows of {w} bytes do not fit pitches of {dp} and {sp}", code=12)
    _check(target, source, w * h, kind)
    if stream is None:
        _memory.copy_rows_blocking(target, dp, source, sp, w, h)
    else:
        _memory.copy_rows_as(_memory.ASYNC, stream, target, dp, source, sp, w, h)


@raising(ERRORS)
def memcpy2D(dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int) -> None:
    """cupy.cuda.runtime.memcpy2D (14.2.0): on the legacy default stream, and waits."""
    _rows(None, dst, dpitch, src, spitch, width, height, kind)


@raising(ERRORS)
def memcpy2DAsync(
    dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int
) -> None:
    """cupy.cuda.runtime.memcpy2DAsync (14.2.0)."""
    _rows(Handle.find(stream), dst, dpitch, src, spitch, width, height, kind)


@raising(ERRORS)
def memset(ptr: int, value: int, size: int) -> None:
    """cupy.cuda.runtime.memset (14.2.0): waits only where the target is the host's or managed."""
    address, byte, nbytes = intptr(ptr), c_int(value) & 0xFF, size_t(size)
    _memory.fill_blocking(address, byte, 1, nbytes)


@raising(ERRORS)
def memsetAsync(ptr: int, value: int, size: int, stream: int) -> None:
    """cupy.cuda.runtime.memsetAsync (14.2.0)."""
    address, byte, nbytes = intptr(ptr), c_int(value) & 0xFF, size_t(size)
    _memory.fill(Handle.find(stream), address, byte, 1, nbytes)


def memcpy2DFromArray(
    dst: int, dpitch: int, src: int, wOffset: int, hOffset: int, width: int, height: int, kind: int
) -> NoReturn:
    """cupy.cuda.runtime.memcpy2DFromArray (14.2.0): not built yet."""
    raise unsupported(_ARRAYS)


def memcpy2DFromArrayAsync(
    dst: int, dpitch: int, src: int, wOffset: int, hOffset: int, width: int, height: int, kind: int,
    stream: int,
) -> NoReturn:  # fmt: skip
    """cupy.cuda.runtime.memcpy2DFromArrayAsync (14.2.0): not built yet."""
    raise unsupported(_ARRAYS)


def memcpy2DToArray(
    dst: int, wOffset: int, hOffset: int, src: int, spitch: int, width: int, height: int, kind: int
) -> NoReturn:
    """cupy.cuda.runtime.memcpy2DToArray (14.2.0): not built yet."""
    raise unsupported(_ARRAYS)


def memcpy2DToArrayAsync(
    dst: int, wOffset: int, hOffset: int, src: int, spitch: int, width: int, height: int, kind: int,
    stream: int,
) -> NoReturn:  # fmt: skip
    """cupy.cuda.runtime.memcpy2DToArrayAsync (14.2.0): not built yet."""
    raise unsupported(_ARRAYS)


def memcpy3D(Memcpy3DParmsPtr: int) -> NoReturn:
    """cupy.cuda.runtime.memcpy3D (14.2.0): not built yet."""
    raise unsupported(_ARRAYS)


def memcpy3DAsync(Memcpy3DParmsPtr: int, stream: int) -> NoReturn:
    """cupy.cuda.runtime.memcpy3DAsync (14.2.0): not built yet."""
    raise unsupported(_ARRAYS)
