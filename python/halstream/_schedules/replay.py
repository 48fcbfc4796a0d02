"""A token is replayed: in the program that it is of, or in what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import _native
from .execution import Execution
from .matching import match
from .token import Token
from .turns import join, split

__all__ = ["Replayed", "replay_changed"]


class Replayed(NamedTuple):
    """The run of a changed program in the order of a token.

    Attributes
    ----------
    execution : Execution
        With its trace.
    fifo : Execution
        Of the same program.
    verdict : str
        ``fixed`` or ``still fails``, and in which order.
    """

    execution: Execution
    fifo: Execution
    verdict: str


def replay_changed(
    run: Callable[..., Execution], token: Token, text: Callable[[int], str] | None = None
) -> Replayed | None:
    """Run a program that has changed since a token was made in the order of the token.

    Parameters
    ----------
    run : function
        Runs the program under a spec, as `search` does.
    token : Token
    text : function
        Gives the stack of a site; the runtime's own if left out.

    Returns
    -------
    Replayed or None
        None if nothing that the token names is found in the program: the token is stale.
    """
    if not token.marks:
        return None
    fifo = run(join("fifo", token.threads), trace=True)
    found = match(token, fifo, text or _native.position_text)
    if found is None:
        return None
    device, _ = split(found.spec)
    execution = fifo if device == "fifo" else run(join(device, token.threads), trace=True)
    ended = "fixed: the changed program passes" if execution.failure is None else "the changed program still fails"
    return Replayed(execution, fifo, f"token {token}: {ended} {found}")
