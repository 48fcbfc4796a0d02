"""What tests of captures share."""

from __future__ import annotations

import halstream as hs

LIMIT = 10.0


def usable(*streams: hs.Stream) -> None:
    """Assert that streams run what is enqueued on them."""
    for stream in streams:
        assert not stream.capturing
        ran: list[int] = []
        stream.call(ran.append, 1)
        stream.synchronize(timeout=LIMIT)
        assert ran == [1]
