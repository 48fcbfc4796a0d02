"""A block is copied to the host before the kernel that writes it has run.

Seen: a prefix cache on the host that was wrong from some request on: the stream
that stores blocks did not wait for the stream that computes them
(vllm-project/vllm #46278).
Missing: an event after the computation, for which the storing stream waits.
Passes by luck: the computation was enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, read, rest


def _run(ordered: bool) -> None:
    host = Host()
    compute, store = cuda.Stream(), cuda.Stream()
    keys, block, cached = host.numbers(4), host.numbers(0), pinned_numbers(0)
    try:
        host.parse()
        block.copy_from(keys, compute)
        done = compute.record_event()
        host.step()
        if ordered:
            store.wait_event(done)
        block.copy_to(cached, store)
        store.synchronize(timeout=LIMIT)
        assert read(cached) == [4] * N
    finally:
        rest(compute, store)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
