"""A stream waits for an event that is recorded only afterwards.

Seen: in an overlap scheduler the waiting side runs ahead of the recording side.
Waiting for an event that was never recorded does nothing, and nothing says so
(sgl-project/sglang #14214).
Missing: the wait in its place, after the record.
Passes by luck: the producer runs at once, on an idle stream, and the consumer
is enqueued after it.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import Host, N, pinned_numbers, rest


def _run(ordered: bool) -> None:
    host = Host()
    producer, consumer = cuda.Stream(), cuda.Stream()
    source, weights, out = pinned_numbers(3), host.numbers(0), host.numbers(0)
    ready = cuda.Event()
    try:
        if not ordered:
            consumer.wait_event(ready)
        host.parse()
        weights.copy_from(source, producer)
        ready.record(producer)
        host.step()
        if ordered:
            consumer.wait_event(ready)
        out.copy_from(weights, consumer)
        assert out.numpy(consumer).tolist() == [3] * N
    finally:
        rest(producer, consumer)


def broken() -> None:
    """Run with the wait before the record."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait after the record."""
    _run(ordered=True)
