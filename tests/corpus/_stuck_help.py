"""What the programs that never end share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import halstream as hs
from halstream import acl
from halstream.testing import Gate

#: What lets everything go on that the programs left waiting, in this order.
later: list[Callable[[], object]] = []


class Stuck(NamedTuple):
    """A program that never ends.

    Attributes
    ----------
    name : str
        Of the function; the twin in `slow` has the same.
    run : callable
        Blocks the calling thread for ever, unless the wait is ended.
    chain : tuple of str
        Words that the text of the error has in this order.
    """

    name: str
    run: Callable[[], None]
    chain: tuple[str, ...]


def hold(stream: hs.Stream) -> Gate:
    """Put a gate on a stream that only `release` opens."""
    gate = Gate(stream)
    later.append(gate.open)
    return gate


def synchronize(stream: int) -> None:
    """Wait for a stream of AscendCL, which has codes in place of exceptions."""
    if acl.rt.synchronize_stream(stream):
        raise hs.StallError(acl.get_recent_err_msg())


def release() -> None:
    """Let everything go on that a program left waiting."""
    while later:
        later.pop(0)()
