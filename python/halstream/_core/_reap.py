"""What finalizers leave behind, and how ordinary calls close it.

The garbage collector may run anywhere, also inside the extension's own calls.
So finalizers only append ids here, and destructors of DLPack capsules, which run
on any thread, only leave tokens in the extension. No lock is held: a finalizer
or a signal handler that calls the runtime may interrupt what is done here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _native
from .._runtime import collected
from . import _handles

__all__ = ["REAP_AT", "close", "drain", "lent", "reap", "take_back"]

#: Ids of streams, events, gates and blocks of memory whose owner was collected; the
#: negative id of a block, if functions on streams still see its memory.
reap = collected.ids
_handles.leave_to(reap)
_reap = _native.taking_objects("reap")

#: Calls that make streams and events drain the list from this length on.
REAP_AT = 32

#: What is kept for other libraries until they give it back, by token.
lent = collected.lent


@functools.cache
def _returned_count() -> Any:
    """Return the number of tokens that were not taken yet, as a look that costs no call."""
    import ctypes  # not at import, which stays fast

    return ctypes.c_uint64.from_address(_native.dlpack_address(1))


def take_back() -> None:
    """Let go of what other libraries gave back."""
    count = _returned_count()
    while count.value:
        owner = lent.pop(_native.dlpack_returned(), None)
        if isinstance(owner, GiveBack):
            owner.function()
        del owner


class GiveBack:
    """A function that is called when the runtime no longer uses borrowed memory."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function


def drain() -> None:
    """Close, in id order, the native objects whose Python owners are gone."""
    while True:
        if reap:
            close(reap)
        if lent:
            _native.mem_reclaim()
            take_back()
        if not reap:  # the owners that were let go of may have appended
            return


def close(ids: list[int]) -> None:
    """Close the native objects of the ids in a list, which is empty then, and free what only they have kept.

    Raises
    ------
    HalError
        If the core cannot close one of them; the others are closed.
    """
    try:
        _reap(ids)
    except RuntimeError as exc:
        raise _native.error(exc) from None
