"""Memory of other processes of the machine, by handles of 64 bytes."""

from __future__ import annotations

from .. import _native
from .._records import BlockRecord, decode

__all__ = ["HANDLE", "close_memory", "memory_handle", "open_memory", "start_of"]

#: The size of a handle of memory or of an event in bytes.
HANDLE = 64


def memory_handle(address: int) -> bytes:
    """Return the handle of the block of device memory that has an address; waits for pending work on it."""
    return bytes.fromhex(_native.mem_share(address))


def start_of(address: int) -> int:
    """Return the start of the block that has an address: what `open_memory` returns stands for it."""
    block: BlockRecord = decode(_native.mem_lookup(address))
    return block["start"]


def open_memory(handle: bytes) -> int:
    """Return the address at which memory of another process is here, until `close_memory` was called as often."""
    return int(_native.mem_open(bytes(handle).hex()))


def close_memory(address: int) -> int:
    """End one `open_memory`; return how many are left."""
    return int(_native.mem_close(address))
