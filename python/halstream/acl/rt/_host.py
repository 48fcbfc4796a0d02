"""Host memory that is registered, and access between devices."""

from __future__ import annotations

from ..._core import _interop, ordinal
from ..._core._context import Context
from ..._memory import PINNED, kind_of, register, unregister
from .. import _codes as codes
from .. import constants as c
from .._call import command
from .._table import refuse
from ._memory import given

__all__ = [
    "device_can_access_peer",
    "device_disable_peer_access",
    "device_enable_peer_access",
    "host_get_device_pointer",
    "host_register",
    "host_register_v2",
    "host_unregister",
]

_FLAGS = c.ACL_HOST_REG_MAPPED | c.ACL_HOST_REG_PINNED


def _registered(pointer: int, size: int) -> int:
    Context.current()
    if kind_of(pointer := given(pointer)) == PINNED:
        raise refuse(codes.HOST_MEMORY_ALREADY_REGISTERED, f"{pointer:#x} is pinned already")
    register(pointer, size)
    return pointer


@command("hhi", (0,))
def host_register(pointer: int, size: int, kind: int, /) -> tuple[int, int]:
    """aclrtHostRegister: (pointer for the device, ret); only ``ACL_HOST_REGISTER_MAPPED``."""
    if kind != c.ACL_HOST_REGISTER_MAPPED:
        raise refuse(codes.RT_FEATURE_NOT_SUPPORT, f"memory cannot be registered as type {kind}")
    return _registered(pointer, size), 0


@command("hhu")
def host_register_v2(pointer: int, size: int, flag: int, /) -> int:
    """aclrtHostRegisterV2: the flags MAPPED and PINNED mean the same."""
    if not flag or flag & ~_FLAGS:
        raise refuse(codes.RT_FEATURE_NOT_SUPPORT, f"memory cannot be registered with {flag:#x}")
    _registered(pointer, size)
    return 0


@command("h", invalid_value=codes.HOST_MEMORY_NOT_REGISTERED, not_ready=codes.RT_MEMORY_FREE)
def host_unregister(pointer: int, /) -> int:
    """aclrtHostUnregister: 207002 while pending work uses the memory."""
    unregister(given(pointer))
    return 0


@command("hu", (0,))
def host_get_device_pointer(pointer: int, flag: int, /) -> tuple[int, int]:
    """aclrtHostGetDevicePointer: (the same pointer, ret)."""
    if flag:
        raise refuse(codes.RT_PARAM_INVALID, f"the flag is 0, not {flag:#x}")
    if kind_of(given(pointer)) != PINNED:
        raise refuse(codes.HOST_MEMORY_NOT_REGISTERED, f"{pointer:#x} is not pinned")
    return pointer, 0


@command("ii", (0,))
def device_can_access_peer(device: int, peer: int, /) -> tuple[int, int]:
    """aclrtDeviceCanAccessPeer: (0 or 1, ret)."""
    Context.current()
    return int(_interop.can_access_peer(ordinal(device), ordinal(peer))), 0


def _peer(peer: int, flags: int = 0) -> tuple[int, int]:
    if flags:
        raise refuse(codes.RT_PARAM_INVALID, f"the flags are 0, not {flags:#x}")
    here, there = Context.current().ordinal, ordinal(peer)
    if not _interop.can_access_peer(here, there):
        text = "itself" if here == there else f"device {here}"
        raise refuse(codes.RT_PARAM_INVALID, f"device {peer} is no peer of {text}")
    return here, there


@command("iu")
def device_enable_peer_access(peer: int, flags: int, /) -> int:
    """aclrtDeviceEnablePeerAccess: again is no error; copies between devices need no permission."""
    _interop.enable_peer(*_peer(peer, flags))
    return 0


@command("i")
def device_disable_peer_access(peer: int, /) -> int:
    """aclrtDeviceDisablePeerAccess: accepted; see `device_enable_peer_access`."""
    _peer(peer)
    return 0
