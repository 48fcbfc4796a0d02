"""The current stream is asked for once, and is another one later.

Seen: an offloading context kept the stream that was current when it was made
and ordered its copies with that; under sharding and recomputation the
activations came from another stream (huggingface/trl #7195).
Missing: a wait for the stream that is current now.
Passes by luck: the activations were enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, read, rest


class _Offload:
    """Brings activations to the host, on a stream of its own."""

    def __init__(self) -> None:
        self.transfer = cuda.Stream()
        self.compute = cuda.current_stream()


def _run(ordered: bool) -> None:
    host = Host()
    offload, recompute = _Offload(), cuda.Stream()
    activations, stash = host.numbers(0), pinned_numbers(0)
    try:
        host.parse()
        with cuda.stream(recompute):
            activations.fill(8)
            host.step()
            offload.transfer.wait_stream(cuda.current_stream() if ordered else offload.compute)
            activations.copy_to(stash, offload.transfer)
        offload.transfer.synchronize(timeout=LIMIT)
        assert read(stash) == [8] * N
    finally:
        rest(offload.transfer, recompute)


def broken() -> None:
    """Run with a wait for the stream that was current once."""
    _run(ordered=False)


def fixed() -> None:
    """Run with a wait for the stream that is current."""
    _run(ordered=True)
