"""Values in memory that streams write and wait for."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

from ... import _memory as memory
from ..._core import _context
from ..._core._interop import backend_name
from ..._memory import DEVICE, PAGEABLE, lookup
from ..._runtime import runtime
from .. import _codes as codes
from .. import constants as c
from .._call import command
from .._table import refuse, stream
from ._memory import given

__all__ = ["value_wait", "value_write"]

_SIZE = 8
# What must hold of the value in memory and the one waited for.
_TESTS: dict[int, Callable[[int, int], bool]] = {
    c.ACL_STREAM_WAIT_VALUE_GEQ: lambda found, wanted: found >= wanted,
    c.ACL_STREAM_WAIT_VALUE_EQ: lambda found, wanted: found == wanted,
    c.ACL_STREAM_WAIT_VALUE_AND: lambda found, wanted: bool(found & wanted),
    c.ACL_STREAM_WAIT_VALUE_NOR: lambda found, wanted: bool(~(found | wanted) & (2**64 - 1)),
}

# How often memory is looked at that no `value_write` changes.
_EVERY_S = 0.001


class _Waiting:
    """A wait that a stream has reached or will reach; its gate holds the stream."""

    def __init__(self, address: int, wanted: int, flag: int) -> None:
        self.address, self.wanted, self._test = address, wanted, _TESTS[flag]
        self.met = False
        self.gate = 0

    def begin(self) -> None:
        """Look at the memory now that the stream is here; runs as a function on it."""
        if not self.check():
            with _lock:
                _waiting.append(self)
                if len(_waiting) == 1:
                    threading.Thread(target=_watch, daemon=True).start()

    def check(self) -> bool:
        """Let the stream go on if the value is what it waits for; return if it is."""
        kind, start, size, _ = lookup(self.address)
        if kind == PAGEABLE or self.address + _SIZE > start + size:
            return False  # the memory was freed
        if self._test(ctypes.c_uint64.from_address(self.address).value, self.wanted):
            self.met = True
            if self.gate:
                _context.open_gate(self.gate)
        return self.met


_lock = threading.Lock()
#: The waits that streams have reached, until they pass.
_waiting: list[_Waiting] = runtime.keep("acl waits for values", [])


def _check_all() -> None:
    for waiting in list(_waiting):
        if waiting.check():
            with _lock:
                if waiting in _waiting:
                    _waiting.remove(waiting)


def _watch() -> None:
    """Look at the memory of all waits until none is left; runs on a thread of its own."""
    while True:
        with _lock:
            if not _waiting:
                return
        _check_all()
        time.sleep(_EVERY_S)


def _cell(pointer: int) -> int:
    """Return the address of a value, which lies in memory of the device or pinned memory."""
    address = given(pointer)
    kind, start, size, _ = lookup(address)
    if kind == PAGEABLE or address + _SIZE > start + size:
        raise refuse(codes.RT_PARAM_INVALID, f"{address:#x} is not 8 bytes of device or pinned memory")
    return address


@command("hhuh")
def value_write(pointer: int, value: int, flag: int, handle: int, /) -> int:
    """aclrtValueWrite: write 64 bits when the stream gets there; the flag is 0."""
    address, where = _cell(pointer), stream(handle)
    if flag:
        raise refuse(codes.RT_PARAM_INVALID, f"the flag is 0, not {flag:#x}")
    source = ctypes.c_uint64(value)
    memory.copy(where, address, ctypes.addressof(source), _SIZE)
    # At once and not at the watcher's next look, which deterministic schedules do not have.
    where.call(_check_all)
    return 0


@command("hhuh")
def value_wait(pointer: int, value: int, flag: int, handle: int, /) -> int:
    """aclrtValueWait: later work waits until the 64 bits are >= (0), == (1), & (2) or nor (3) `value`.

    The memory is looked at when `value_write` changes it, and every millisecond.
    On a vendor's backend only pinned memory can be waited for (207000).
    """
    address, where = _cell(pointer), stream(handle)
    if flag not in _TESTS:
        raise refuse(codes.RT_PARAM_INVALID, f"there is no condition {flag}")
    if backend_name() != "host" and lookup(address)[0] == DEVICE:
        raise refuse(codes.RT_FEATURE_NOT_SUPPORT, "the host cannot look at this device's memory")
    waiting = _Waiting(address, value, flag)
    where.call(waiting.begin)
    waiting.gate = _context.gate(where)
    if waiting.met:
        _context.open_gate(waiting.gate)
    return 0
