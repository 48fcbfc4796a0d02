"""Copies and fills."""

from __future__ import annotations

import ctypes

from ... import _memory as memory
from ..._core._context import Context
from ..._memory import DEVICE, PAGEABLE, PINNED, kind_of
from ..._memory._addresses import check_unsafe
from .. import _codes as codes
from .. import constants as c
from .._ascendcl import COPY_ENDS
from .._call import command
from .._table import refuse, stream
from ._memory import given

__all__ = [
    "memcpy",
    "memcpy2d",
    "memcpy2d_async",
    "memcpy_async",
    "memcpy_async_with_condition",
    "memset",
    "memset_async",
]

_KIND = {PAGEABLE: "pageable host", PINNED: "pinned host", DEVICE: "device"}


def _check(dst: int, dst_max: int, src: int, count: int, kind: int) -> None:
    given(dst, "the target")
    given(src, "the source")
    if not c.ACL_MEMCPY_HOST_TO_HOST <= kind <= c.ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
        raise refuse(codes.INVALID_PARAM, f"there is no kind of copy {kind}")
    if count > dst_max:
        raise refuse(codes.RT_PARAM_INVALID, f"{count} bytes do not fit a target of {dst_max}")


def _directed(dst: int, src: int, kind: int) -> int:
    """Check that the memory is what `kind` says; return the kind of the source's."""
    source, target = kind_of(src), kind_of(dst)
    ends = source == DEVICE, target == DEVICE
    if COPY_ENDS.get(kind, ends) != ends:
        raise refuse(
            codes.RT_PARAM_INVALID,
            f"kind {kind} is another direction than {_KIND[source]} to {_KIND[target]} memory",
        )
    if ends == (False, False):
        raise refuse(codes.RT_FEATURE_NOT_SUPPORT, "a stream does not copy from host to host")
    return source


@command("hhhhi")
def memcpy(dst: int, dst_max: int, src: int, count: int, kind: int, /) -> int:
    """aclrtMemcpy: waits for the copy and for no stream; the pointers give the direction."""
    if not count:
        return 0
    _check(dst, dst_max, src, count, kind)
    check_unsafe("copy")
    aside = Context.current().aside
    if dst != src:
        memory.copy(aside, dst, src, count)
        aside.synchronize()
    return 0


def _copy_async(dst: int, dst_max: int, src: int, count: int, kind: int, handle: int) -> int:
    if not count:
        return 0
    _check(dst, dst_max, src, count, kind)
    where = stream(handle)
    source = _directed(dst, src, kind)
    src_is_staged = kind == c.ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE and source == PINNED
    if src_is_staged:
        # A pageable copy of it: the caller may change the source at once.
        staged = ctypes.create_string_buffer(count)
        ctypes.memmove(staged, src, count)
        src = ctypes.addressof(staged)
    if src_is_staged:
        memory.copy(where, dst, src, count)
    else:
        memory.copy_as(memory.STAGED, where, dst, src, count)
    return 0


@command("hhhhih")
def memcpy_async(dst: int, dst_max: int, src: int, count: int, kind: int, handle: int, /) -> int:
    """aclrtMemcpyAsync: pinned and device memory are read when the copy runs.

    A copy from or to pageable host memory is done on return.
    """
    return _copy_async(dst, dst_max, src, count, kind, handle)


@command("hhhhih")
def memcpy_async_with_condition(dst: int, dst_max: int, src: int, count: int, kind: int, handle: int, /) -> int:
    """aclrtMemcpyAsyncWithCondition: as `memcpy_async`."""
    return _copy_async(dst, dst_max, src, count, kind, handle)


def _fits(pointer: int, most: int, count: int) -> None:
    given(pointer)
    if count > most:
        raise refuse(codes.RT_PARAM_INVALID, f"{count} bytes do not fit memory of {most}")


@command("hhih")
def memset(pointer: int, most: int, value: int, count: int, /) -> int:
    """aclrtMemset: bytes of device or pinned memory; waits for the fill and for no stream."""
    _fits(pointer, most, count)
    check_unsafe("fill")
    aside = Context.current().aside
    memory.fill(aside, pointer, value & 0xFF, 1, count)
    aside.synchronize()
    return 0


@command("hhihh")
def memset_async(pointer: int, most: int, value: int, count: int, handle: int, /) -> int:
    """aclrtMemsetAsync: bytes of device or pinned memory, filled in stream order."""
    _fits(pointer, most, count)
    where = stream(handle)
    memory.fill(where, pointer, value & 0xFF, 1, count)
    return 0


def _check_rows(dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int) -> None:
    _check(dst, min(dpitch, spitch), src, width, kind)
    # Beyond this the rows cannot be in any memory, and the sizes would not fit 64 bits.
    if max(dpitch, spitch) * height >= 2**63:
        raise refuse(codes.RT_PARAM_INVALID, f"{height} rows at this pitch fit no memory")
    _directed(dst, src, kind)


@command("hhhhhhi")
def memcpy2d(dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, /) -> int:
    """aclrtMemcpy2d: rows between host and device, or on devices; waits for no stream."""
    if not width or not height:
        return 0
    _check_rows(dst, dpitch, src, spitch, width, height, kind)
    check_unsafe("copy")
    aside = Context.current().aside
    memory.copy_rows(aside, dst, dpitch, src, spitch, width, height)
    aside.synchronize()
    return 0


@command("hhhhhhih")
def memcpy2d_async(
    dst: int,
    dpitch: int,
    src: int,
    spitch: int,
    width: int,
    height: int,
    kind: int,
    handle: int,
    /,
) -> int:
    """aclrtMemcpy2dAsync: `memcpy2d` in the order of a stream."""
    if not width or not height:
        return 0
    where = stream(handle)
    _check_rows(dst, dpitch, src, spitch, width, height, kind)
    memory.copy_rows_as(memory.STAGED, where, dst, dpitch, src, spitch, width, height)
    return 0
