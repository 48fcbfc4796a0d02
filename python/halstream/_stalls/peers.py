"""What this process and the other ranks of its job say of each other, once a library for collectives is in use."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Protocol

from .._runtime import runtime

__all__ = ["Source", "publish", "read", "serve", "state", "withdraw"]

#: For how many seconds what a rank says of itself counts: one that waits says it again at each look.
FRESH_S = 2.0


class Source(Protocol):
    """What knows of the collectives of this process: torch's module, see ``torch/ranks.h``."""

    def ranks(self) -> Any:
        """Return who the ranks are, and what this process waits for."""

    def publish_wait(self, progress: int, text: str, found: str) -> bool:
        """Let the other ranks read a text, unless there was progress."""

    def withdraw_wait(self) -> None:
        """Take the text back."""


_sources: list[Source] = runtime.keep("what knows of other ranks", [])


def serve(source: Source) -> None:
    """Have a library asked about the ranks of its groups from now on."""
    _sources[:] = [source]


def state() -> Any:
    """Return what this process knows of the ranks of its groups; None without any.

    A dictionary with `progress`, a number that changes whenever a collective begins, has met the
    others or ends; `threads`, which carry out those that run; `own`, who this process is; `groups`;
    and `waiting`, the collectives that wait for other ranks.
    """
    return _sources[0].ranks() if _sources else None


def publish(progress: int, claim: dict[str, Any], found: str) -> bool:
    """Tell the other ranks of this machine that this one waits, for as long as there is no progress.

    `found` is the text of the stall that it has found, '' before. Returns False if there was progress.
    """
    claim = {**claim, "found": bool(found), "at": time.monotonic()}
    return bool(_sources[0].publish_wait(progress, json.dumps(claim), found))


def withdraw() -> None:
    """Say no longer that this rank waits."""
    if _sources:
        _sources[0].withdraw_wait()


def read(one: dict[str, Any], machine: str) -> Any:
    """Return what a rank says of its wait; None if it does not wait, or is not on this machine."""
    if not machine or one["machine"] != machine or one["file"] < 0:
        return None
    try:
        claim = json.loads(Path(f"/proc/{one['pid']}/fd/{one['file']}").read_bytes())
    except (OSError, ValueError):
        return None  # it waits no more, is about to say something else, or has ended
    if claim["token"] != one["token"] or time.monotonic() - claim["at"] > FRESH_S:
        return None
    return claim
