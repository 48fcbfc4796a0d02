"""Memory of devices and of the host, and what is known of a pointer."""

from __future__ import annotations

import mmap
from typing import Any

from ..._core._context import Context
from ..._memory import DEVICE, PAGEABLE, PINNED, _addresses, lookup, memory_info
from .. import _codes as codes
from .. import constants as c
from .._ascendcl import POLICY_JOINED
from .._call import command
from .._table import MASK, refuse

__all__ = [
    "free",
    "free_host",
    "get_mem_info",
    "malloc",
    "malloc_align32",
    "malloc_cached",
    "malloc_host",
    "malloc_host_with_cfg",
    "malloc_with_cfg",
    "mem_flush",
    "mem_invalidate",
    "pointer_get_attributes",
]

_PLACES = {
    PAGEABLE: c.ACL_MEM_LOCATION_TYPE_UNREGISTERED,
    PINNED: c.ACL_MEM_LOCATION_TYPE_HOST,
    DEVICE: c.ACL_MEM_LOCATION_TYPE_DEVICE,
}


def given(address: int, what: str = "the pointer") -> int:
    """Return a pointer modulo 2**64; 0 is refused."""
    address &= MASK
    if not address:
        raise refuse(codes.INVALID_PARAM, f"{what} is 0 (NULL)")
    return address


def _device_memory(size: int, policy: int) -> tuple[int, int]:
    if not size:
        raise refuse(codes.INVALID_PARAM, "the size is 0; ask for one byte or more")
    if not 0 <= policy & ~POLICY_JOINED <= c.ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
        raise refuse(codes.RT_PARAM_INVALID, f"there is no allocation policy {policy:#x}")
    return _addresses.alloc(Context.current().ordinal, size), 0


@command("hi", (0,))
def malloc(size: int, policy: int, /) -> tuple[int, int]:
    """aclrtMalloc: (pointer, ret); every policy gives the same memory.

    What lies behind `size` bytes may not be used, though CANN rounds sizes up.
    """
    return _device_memory(size, policy)


@command("hi", (0,))
def malloc_align32(size: int, policy: int, /) -> tuple[int, int]:
    """aclrtMallocAlign32: as `malloc`."""
    return _device_memory(size, policy)


@command("hi", (0,))
def malloc_cached(size: int, policy: int, /) -> tuple[int, int]:
    """aclrtMallocCached: as `malloc`, for host and device see the same bytes."""
    return _device_memory(size, policy)


@command("hid", (0,))
def malloc_with_cfg(size: int, policy: int, cfg: dict[str, Any], /) -> tuple[int, int]:
    """aclrtMallocWithCfg: as `malloc`; the settings change nothing."""
    return _device_memory(size, policy)


def _host_memory(size: int) -> tuple[int, int]:
    size &= MASK
    if not size:
        raise refuse(codes.INVALID_PARAM, "the size is 0; ask for one byte or more")
    Context.current()
    return _addresses.alloc_host(size), 0


@command("h", (0,))
def malloc_host(size: int, /) -> tuple[int, int]:
    """aclrtMallocHost: (pointer, ret), pinned."""
    return _host_memory(size)


@command("hd", (0,))
def malloc_host_with_cfg(size: int, cfg: dict[str, Any], /) -> tuple[int, int]:
    """aclrtMallocHostWithCfg: as `malloc_host`; the settings change nothing."""
    return _host_memory(size)


@command("h")
def free(pointer: int, /) -> int:
    """aclrtFree: waits for nothing; pending work completes first all the same, and the sanitizer reports it."""
    pointer = given(pointer)
    Context.current()
    _addresses.free_no_wait(pointer)
    return 0


@command("h", not_ready=codes.RT_MEMORY_FREE)
def free_host(pointer: int, /) -> int:
    """aclrtFreeHost: 207002 while pending work uses the memory, which CANN leaves undefined."""
    pointer = given(pointer)
    Context.current()
    _addresses.free_host(pointer)
    return 0


@command("hh")
def mem_flush(pointer: int, size: int, /) -> int:
    """aclrtMemFlush: nothing to do."""
    given(pointer)
    return 0


@command("hh")
def mem_invalidate(pointer: int, size: int, /) -> int:
    """aclrtMemInvalidate: nothing to do."""
    given(pointer)
    return 0


@command("i", (0, 0))
def get_mem_info(attr: int, /) -> tuple[int, int, int]:
    """aclrtGetMemInfo: (free, total, ret) bytes of the current device, for every attribute."""
    where = Context.current().ordinal
    if not c.ACL_DDR_MEM <= attr <= c.ACL_MEM_P2P_HUGE1G:
        raise refuse(codes.RT_PARAM_INVALID, f"there is no memory attribute {attr}")
    return (*memory_info(where), 0)


@command("h", ({},))
def pointer_get_attributes(pointer: int, /) -> tuple[dict[str, Any], int]:
    """aclrtPointerGetAttributes: ({location: {id, type}, page_size}, ret); any address."""
    kind, _, _, device = lookup(given(pointer))
    place = {"id": max(0, device), "type": _PLACES[kind]}
    return {"location": place, "page_size": mmap.PAGESIZE}, 0
