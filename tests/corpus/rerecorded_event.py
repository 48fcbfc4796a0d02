"""An event is recorded again between its record and the wait.

Seen: one event per device was recorded on several streams in turn, and only the
last of them was waited for (torch/cutorch #222); events that were used again
lost the order they stood for (PaddlePaddle/Paddle #58347).
Missing: the wait before the event is used for something else.
Passes by luck: the load was enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream.paddle import device

from ._host import Host, N, pinned_numbers, rest


def _run(ordered: bool) -> None:
    host = Host()
    loads, metrics, compute = device.Stream(), device.Stream(), device.Stream()
    batch, loss, out = host.numbers(0), host.numbers(0), host.numbers(0)
    source = pinned_numbers(5)
    event = device.Event()
    try:
        host.parse()
        batch.copy_from(source, loads)
        event.record(loads)
        if ordered:
            compute.wait_event(event)
        loss.fill(1, metrics)
        event.record(metrics)
        host.step()
        compute.wait_event(event)
        out.copy_from(batch, compute)
        assert out.numpy(compute).tolist() == [5] * N
    finally:
        rest(loads, metrics, compute)


def broken() -> None:
    """Run with one wait, after the second record."""
    _run(ordered=False)


def fixed() -> None:
    """Run with a wait after each record."""
    _run(ordered=True)
