"""Memory that other streams still use when it is freed: kept back until they are past it.

The pool hands a freed block out again in the order of its own stream. What
another stream does with it, the runtime learns from the operations that say
what they work on; for all else the program names the stream, and freeing waits
for what is on that stream by then.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable

from .. import _native
from .._core._base import held
from .._core._event import Event
from .._core._stream import Stream
from .._errors import HalError, OutOfMemoryError
from .._runtime import runtime


@dataclasses.dataclass
class Counts:
    """How often memory ran out, and was found by waiting for what is held."""

    out_of_memory: int = 0
    retries: int = 0


#: By ordinal.
counts: dict[int, Counts] = runtime.keep("out-of-memory counts", defaultdict(Counts), clear=True)


class Held:
    """A freed block that streams were still using."""

    def __init__(
        self, ptr: int, nbytes: int, ordinal: int, owner: Stream | None, others: Iterable[Stream]
    ) -> None:
        self.ptr, self.nbytes, self.ordinal, self.owner = ptr, nbytes, ordinal, owner
        self.events: list[Event] = []
        for stream in others:
            event = Event(stream._ordinal)
            # The work of a stream that was closed still runs; nothing can mark it any more.
            with contextlib.suppress(HalError):
                Stream.record(stream, event)
                self.events.append(event)

    def passed(self) -> bool:
        """Return True once every stream is past the point where the block was freed."""
        return all(_done(event) for event in self.events)

    def give_back(self) -> None:
        """Give the block back, in the order of its own stream if it has one."""
        if self.owner is not None:
            with contextlib.suppress(RuntimeError):
                _native.mem_free_async(self.owner._id, self.ptr)
                return
        _native.mem_reap(self.ptr)


def _done(event: Event) -> bool:
    try:
        return bool(_native.event_passed(event._id))
    except HalError:
        return True  # its work was dropped


def hold(block: Held) -> None:
    """Keep a block back."""
    held.append(block)


def poll() -> None:
    """Give back the blocks whose streams are past them.

    Each block is taken out before it is looked at and no lock is held: a signal
    handler, a finalizer or another thread may come here at the same time.
    """
    for _ in range(len(held)):
        block = _first()
        if block is None:
            return
        passed = False
        try:
            passed = block.passed()
        finally:
            if not passed:
                held.append(block)
        if passed:
            block.give_back()


def recover() -> bool:
    """Wait until all held blocks can be given back; False if there were none."""
    found = False
    while (block := _first()) is not None:
        found = True
        for event in block.events:
            with contextlib.suppress(HalError):  # the stream reports it, not the memory
                event.synchronize()
        block.give_back()
    return found


def retry(exc: RuntimeError, ordinal: int, alloc: Callable[..., int], *args: int) -> int:
    """Allocate again after `exc` once held memory is back; raise it if none is held."""
    failed = _native.error(exc)
    if not isinstance(failed, OutOfMemoryError):
        raise failed
    figures = counts[ordinal]
    figures.out_of_memory += 1
    if not recover():
        raise failed
    figures.retries += 1
    found = alloc(*args)
    figures.out_of_memory -= 1
    return found


def held_bytes(ordinal: int) -> int:
    """Return the bytes that held blocks take in the pool of a device."""
    return sum(
        _room(block.nbytes)
        for block in held.copy()
        if block.ordinal == ordinal and block.owner is not None
    )


def _first() -> Held | None:
    try:
        first: Held = held.pop(0)
    except IndexError:
        return None
    return first


def _room(nbytes: int) -> int:
    # As hal/pool.go rounds sizes.
    step = 512 if nbytes <= 1 << 20 else 1 << 20 if nbytes <= 1 << 27 else 1 << 21
    return (nbytes + step - 1) & -step
