"""Double buffering one slot short.

Seen: buffers that go round between a copying and a computing stream need one
more slot than loads are ahead of their use, or a wait for the last use
(mindspore-ai/hyper-parallel #653 asks for such rings; the hazard is spelled out
in the review of karpathy/llm.c #593).
Missing: the wait counts three slots, and the ring has two.
Passes by luck: the host waits for each load, and the use of the slot was
ready before that.
"""

from __future__ import annotations

from halstream.mindspore import hal

from ._host import LIMIT, Host, N, pinned_numbers, rest

SLOTS, CHUNKS = 2, 4


def _run(ordered: bool) -> None:
    host = Host()
    copies, compute = hal.Stream(), hal.Stream()
    ring = [host.numbers(0) for _ in range(SLOTS)]
    outs = [host.numbers(0) for _ in range(CHUNKS)]
    sources = [pinned_numbers(i + 1) for i in range(CHUNKS)]
    used: list[hal.Event] = []
    wait = SLOTS if ordered else SLOTS + 1  # how far back the last use of a slot is
    try:
        for i in range(CHUNKS):
            if i >= wait:
                copies.wait_event(used[i - wait])
            ring[i % SLOTS].copy_from(sources[i], copies)
            copies.synchronize(timeout=LIMIT)
            host.parse()
            outs[i].copy_from(ring[i % SLOTS], compute)
            used.append(compute.record_event())
            host.step()
        got = [out.numpy(compute).tolist() for out in outs]
        assert got == [[i + 1] * N for i in range(CHUNKS)]
    finally:
        rest(copies, compute)


def broken() -> None:
    """Run with the wait for one slot too many."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait for the slots there are."""
    _run(ordered=True)
