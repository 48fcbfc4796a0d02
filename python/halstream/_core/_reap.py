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

__all__ = ["REAP_AT", "close_one", "drain", "lent", "reap", "take_back"]

#: Ids of streams, events, gates and blocks of memory whose owner was collected; the
#: negative id of a block, if functions on streams still see its memory.
reap = collected.ids
collected.note = _handles.collected
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
        reap.extend(_handles.dropped())
        if reap:
            _close(reap)
        if lent:
            _native.mem_reclaim()
            take_back()
        if not reap:  # the owners that were let go of may have appended
            return


def _close(ids: list[int]) -> None:
    if len(ids) == 1:  # the usual case, in every loop that drops what it made
        try:
            ident = ids.pop()
        except IndexError:  # another thread, or a signal's handler, drains too
            return
        close_one(ident)
        return
    found: list[int] = []
    try:
        while ids:
            found.append(ids.pop())
    except IndexError:
        pass
    found.sort(reverse=True)
    try:
        while found:
            close_one(found.pop())
    finally:
        ids.extend(found)  # of a call that failed, or that a signal's handler ended


def close_one(ident: int) -> None:
    """Close the native object of an id, whose owner is gone.

    Raises
    ------
    HalError
        If the core cannot close it.
    """
    try:
        _handles.reap(ident)
    except RuntimeError as exc:
        raise _native.error(exc) from None
