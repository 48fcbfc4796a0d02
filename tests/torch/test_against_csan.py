"""The sanitizer's verdicts beside those of torch's own sanitizer of streams (torch.cuda._sanitizer).

A scenario is told to torch's checker step by step, and run as a torch program under
halstream's. Both must object to the same operators. Where halstream sees more, the last
tests of this file say what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

# Steps: ("work", stream, tensors read, tensors written), ("record", event, stream), ("wait", event, stream),
# ("new event", event), ("new stream", stream), ("stream", stream), ("event", event) and ("device",) of the host.
Step = tuple[Any, ...]
TEN = range(1, 11)


def reads(stream: int, *tensors: int) -> Step:
    return "work", stream, tensors, ()


def writes(stream: int, *tensors: int) -> Step:
    return "work", stream, (), tensors


SCENARIOS: dict[str, tuple[list[Step], int]] = {  #: with the number of tensors that are accessed wrongly
    "an operator without tensors": ([reads(0)], 0),
    "two streams read": ([reads(1, 1), reads(2, 1)], 0),
    "a write beside a read": ([reads(1, 1), writes(2, 1)], 1),
    "a write behind a read, by an event": ([reads(1, 1), ("record", 0, 1), ("wait", 0, 2), writes(2, 1)], 0),
    "each read is compared with the last write": (
        [writes(1, 1), ("record", 0, 1), ("wait", 0, 2), reads(2, 1), reads(3, 1)],
        1,
    ),
    "two streams read behind a write, and one writes": (
        [writes(1, 1), ("record", 0, 1), ("wait", 0, 2), ("wait", 0, 3), reads(2, 1), reads(3, 1), writes(2, 1)],
        1,
    ),
    "a chain of streams": (
        [reads(0, 1), *(step for i in range(10) for step in (("record", i, i), ("wait", i, i + 1))), writes(10, 1)],
        0,
    ),
    "a record before the last read": (
        [reads(1, 1), ("record", 0, 1), reads(1, 1), ("wait", 0, 2), writes(2, 1)],
        1,
    ),
    "an event that was made again": (
        [reads(1, 1), ("record", 0, 1), ("new event", 0), ("wait", 0, 2), writes(2, 1)],
        1,
    ),
    "one of many reads is not waited for": (
        [
            *(step for i in TEN for step in (reads(i, 1), ("record", i, i))),
            *(("wait", i, 0) for i in TEN[:-1]),
            writes(0, 1),
        ],
        1,
    ),
    "all of many reads are waited for": (
        [
            *(step for i in TEN for step in (reads(i, 1), ("record", i, i))),
            *(("wait", i, 0) for i in TEN),
            writes(0, 1),
        ],
        0,
    ),
    "many tensors at once": ([writes(0, *TEN), writes(1, *TEN)], len(TEN)),
    "a stream that waited knows both pasts": (
        [
            writes(1, 1),
            writes(2, 2),
            ("record", 1, 1),
            ("record", 2, 2),
            writes(1, 1),
            writes(2, 2),
            ("wait", 1, 2),
            ("wait", 2, 1),
            ("record", 3, 2),
            ("wait", 3, 1),
            writes(1, 1, 2),
        ],
        0,
    ),
    "an event that was recorded again": (
        [reads(1, 1), reads(2, 2), ("record", 1, 1), ("record", 1, 2), ("wait", 1, 3), writes(3, 1)],
        1,
    ),
    "two streams wait for one event": (
        [writes(1, 1), ("record", 1, 1), ("wait", 1, 2), ("wait", 1, 3), reads(2, 1), reads(3, 1)],
        0,
    ),
    "the host waits for the device": ([*(writes(i, i) for i in TEN), ("device",), writes(0, *TEN)], 0),
    "the device goes on after the host waited": ([writes(1, 1), ("device",), writes(1, 1), writes(2, 1)], 1),
    "a stream that is made later": ([writes(1, 1), ("device",), ("new stream", 2), writes(2, 1)], 0),
    "the host waits for a stream": (
        [writes(0, 1), writes(1, 2), ("stream", 0), reads(2, 1), reads(3, 1), reads(4, 2)],
        1,
    ),
    "the host waits for an event": (
        [
            writes(1, 1),
            ("record", 1, 1),
            writes(1, 2),
            ("record", 2, 1),
            ("event", 1),
            writes(2, 1),
            writes(2, 2),
        ],
        1,
    ),
}


def verdicts_of_torch(steps: list[Step]) -> list[int]:
    """Return how many tensors torch's checker objects to in each operator."""
    from torch.cuda import _sanitizer as csan

    handler = csan.EventHandler()
    found = []
    for what, *where in steps:
        if what == "work":
            stream, read, written = where
            found.append(len(handler._handle_kernel_launch(
                1000 + stream, set(read), set(written), set(), "", {one: [""] for one in (*read, *written)}
            )))  # fmt: skip
        elif what == "record":
            handler._handle_event_record(where[0], 1000 + where[1])
        elif what == "wait":
            handler._handle_event_wait(where[0], 1000 + where[1])
        elif what == "new event":
            handler._handle_event_deletion(where[0])
            handler._handle_event_creation(where[0])
        elif what == "new stream":
            handler._handle_stream_creation(1000 + where[0])
        elif what == "stream":
            handler._handle_stream_synchronization(1000 + where[0])
        elif what == "event":
            handler._handle_event_synchronization(where[0])
        else:
            handler._handle_device_synchronization()
    return found


def verdicts_of_halstream(torch: Any, steps: list[Step]) -> list[int]:
    """Run the steps as a program, and return how many findings the sanitizer has at each operator.

    A finding is about two operators, whatever the number of their tensors.
    """
    streams: dict[int, Any] = {}
    events: dict[int, Any] = {}
    numbers = {n for what, *where in steps if what == "work" for n in (*where[1], *where[2])}
    tensors = {n: torch.zeros(16, device="cuda") for n in numbers}
    torch.cuda.synchronize()
    kept, found = [], []

    def stream(number: int) -> Any:
        return streams.setdefault(number, torch.cuda.Stream())

    def work(number: int, read: tuple[int, ...], written: tuple[int, ...]) -> None:
        with torch.cuda.stream(stream(number)):
            kept.extend(tensors[n] + 1 for n in read)
            for n in written:
                tensors[n].add_(1)

    with hs.sanitize(on="collect") as report:
        for step, (what, *where) in enumerate(steps):
            if what == "work":
                before = sum(one.pairs for one in report.races)
                # A line of its own for each, as a program has: pairs of the same two lines are one finding.
                place = compile("\n" * step + "work(*where)", "scenario.py", "exec")
                exec(place, {"work": work, "where": where})
                found.append(sum(one.pairs for one in report.races) - before)
            elif what == "record":
                events.setdefault(where[0], torch.cuda.Event()).record(stream(where[1]))
            elif what == "wait":
                stream(where[1]).wait_event(events[where[0]])
            elif what == "new event":
                events[where[0]] = torch.cuda.Event()
            elif what == "new stream":
                streams[where[0]] = torch.cuda.Stream()
            elif what == "stream":
                stream(where[0]).synchronize()
            elif what == "event":
                events[where[0]].synchronize()
            else:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_verdicts_are_those_of_torchs_own_sanitizer(torch: Any, name: str) -> None:
    steps, wrong = SCENARIOS[name]
    expected = verdicts_of_torch(steps)
    assert sum(expected) == wrong
    assert [bool(found) for found in verdicts_of_halstream(torch, steps)] == [bool(found) for found in expected]


def _both(torch: Any, work: Callable[[Any], Any]) -> tuple[int, int]:
    """Return how many findings about a program torch's sanitizer has, and halstream's."""
    from torch.cuda import _sanitizer as csan

    side = torch.cuda.Stream()
    with hs.sanitize(on="collect") as report:
        work(side)
        torch.cuda.synchronize()
    mode = csan.CUDASanitizerDispatchMode()
    errors = 0
    with mode:
        mode.event_handler._handle_device_synchronization()
        try:
            work(side)
        except csan.CUDASanitizerErrors as error:
            errors = len(error.errors)
    torch.cuda.synchronize()
    return errors, len(report)


def test_parts_of_a_tensor_are_different_bytes_to_halstream_alone(torch: Any) -> None:
    """csan knows a tensor by its address, so that a view that begins elsewhere is another tensor to it."""
    x = torch.zeros(8, device="cuda")

    def overlapping(side: Any) -> None:
        with torch.cuda.stream(side):
            x[2:6].add_(1)
        x[4:].add_(1)

    def apart(side: Any) -> None:
        with torch.cuda.stream(side):
            x[:4].add_(1)
        x[4:].add_(1)

    def columns(side: Any) -> None:
        matrix = x.view(4, 2)
        with torch.cuda.stream(side):
            matrix[:, 0].add_(1)
        matrix[:, 1].add_(1)

    def beginnings(side: Any) -> None:
        with torch.cuda.stream(side):
            x[:2].add_(1)
        x.view(4, 2)[:, 0].add_(1)

    assert _both(torch, overlapping) == (0, 1)
    assert _both(torch, apart) == (0, 0)
    assert _both(torch, columns) == (0, 0)
    assert _both(torch, beginnings) == (1, 1)


def test_the_host_is_seen_by_halstream_alone(torch: Any) -> None:
    x = torch.ones(8, device="cuda")
    pinned = torch.zeros(8).pin_memory()

    def early(side: Any) -> None:
        pinned.copy_(x, non_blocking=True)
        pinned.sum()

    def refill(side: Any) -> None:
        x.copy_(pinned, non_blocking=True)
        pinned.fill_(3)

    assert _both(torch, early) == (0, 1)
    assert _both(torch, refill) == (0, 1)


def test_memory_that_is_used_again_is_seen_by_halstream_alone(torch: Any) -> None:
    """csan forgets a tensor with its memory: what still reads it is no longer compared with what comes."""

    def reuse(side: Any) -> None:
        x = torch.ones(1000, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.sum()
        del x
        torch.zeros(1000, device="cuda")

    found = _both(torch, reuse)
    assert found[1] == 1
