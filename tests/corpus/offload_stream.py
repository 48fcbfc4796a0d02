"""A copy to the host runs on the stream that made the tensor, not on the current one.

Seen: inside a context of a copying stream the copies of activations still ran on
the computing stream; what waits for the copying stream then waits for nothing
(mindspore-ai/hyper-parallel #266, #402, #515).
Missing: the copying stream in the call of the copy.
Passes by luck: the copy was enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream.mindspore import hal

from ._host import LIMIT, Host, N, pinned_numbers, read, rest


def _run(ordered: bool) -> None:
    host = Host()
    compute, copies, prefetch = hal.Stream(), hal.Stream(), hal.Stream()
    activations, saved = host.numbers(6), pinned_numbers(0)
    try:
        host.parse()
        with hal.StreamCtx(copies):
            activations.copy_to(saved, hal.current_stream() if ordered else compute)
            offloaded = hal.current_stream().record_event()
        host.step()
        prefetch.wait_event(offloaded)
        activations.fill(1, prefetch)  # the memory is used for the next layer
        prefetch.synchronize(timeout=LIMIT)
        rest(compute, copies)
        assert read(saved) == [6] * N
    finally:
        rest(compute, copies, prefetch)


def broken() -> None:
    """Run with the copy on the stream that made the tensor."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the copy on the current stream."""
    _run(ordered=True)
