"""A function takes a stream and does not pass it on.

Seen: a resize whose trivial case is a plain copy made that copy on the default
stream and not on the one it was given (OpenPPL/ppl.cv #70; an asynchronous
`set` that always used the default stream: inducer/pycuda #83).
Missing: the argument.
Passes by luck: the default stream is idle, so the copy runs as soon as it is
enqueued.
"""

from __future__ import annotations

import halstream as hs
from halstream.cupy import cuda

from ._host import Host, N, rest


def _resize(target: hs.Array, source: hs.Array, stream: cuda.Stream, ordered: bool) -> None:
    """Scale an image; the same size is a copy."""
    if ordered:
        target.copy_from(source, stream)
    else:
        target.copy_from(source, cuda.get_current_stream())


def _run(ordered: bool) -> None:
    host = Host()
    stream = cuda.Stream(non_blocking=True)
    image, scaled, blurred = host.numbers(5), host.numbers(0), host.numbers(0)
    try:
        host.parse()
        _resize(scaled, image, stream, ordered)
        host.step()
        blurred.copy_from(scaled, stream)
        assert blurred.numpy(stream).tolist() == [5] * N
    finally:
        rest(stream, cuda.Stream.null)


def broken() -> None:
    """Run with the stream left out."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the stream passed on."""
    _run(ordered=True)
