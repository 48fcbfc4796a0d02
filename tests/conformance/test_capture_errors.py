"""What each forbidden call of a capture says: the rule, the operation, the line, the stream and what to do instead."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import halstream as hs
import numpy as np
import pytest
from capture_help import LIMIT, usable

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


@dataclass
class Scene:
    """The streams and objects that a forbidden call works on."""

    s: hs.Stream = field(default_factory=hs.Stream)  # captures
    o: hs.Stream = field(default_factory=hs.Stream)  # does not
    array: hs.Array = field(default_factory=lambda: hs.zeros(16, "u1"))
    run: hs.GraphExec = field(default_factory=lambda: hs.Graph().instantiate())

    def __post_init__(self) -> None:
        self.before = self.o.record()
        self.legacy = hs.Device(0).default_stream
        hs.synchronize()

    def inside(self) -> hs.Event:
        """Return an event that is recorded in the capture."""
        return self.s.record()


def _await(what: Any) -> None:
    async def wait() -> None:
        await what

    asyncio.run(wait())


def _elapsed(x: Scene) -> None:
    first = x.inside()
    first.elapsed(x.inside())


#: Each call with CUDA's number of its rule, the operation that the error names, and what its text says of the remedy.
ILLEGAL: dict[str, tuple[int, str, str, Callable[[Scene], object]]] = {
    "query": (900, "query", "end the capture and launch its graph first", lambda x: x.s.query()),
    "synchronize": (900, "synchronize", "end the capture and launch its graph first", lambda x: x.s.synchronize()),
    "await the stream": (900, "synchronize", "end the capture and launch its graph first", lambda x: _await(x.s)),
    "synchronize the device": (900, "synchronize device", "end the capture first", lambda x: x.s.device.synchronize()),
    "query an event": (907, "query event", "record it outside", lambda x: x.inside().query()),
    "synchronize an event": (907, "synchronize event", "record it outside", lambda x: x.inside().synchronize()),
    "await an event": (907, "query event", "record it outside", lambda x: _await(x.inside())),
    "elapsed": (907, "elapsed", "record it outside", _elapsed),
    "wait for an event": (
        905,
        "wait event",
        "before the capture begins, or as an external event",
        lambda x: x.s.wait(x.before),
    ),
    "wait for a stream": (905, "wait stream", "before the capture begins, or let it wait", lambda x: x.s.wait(x.o)),
    "use the legacy stream": (906, "empty", "use another stream", lambda x: x.legacy.nop()),
    "query the legacy stream": (906, "query", "use another stream", lambda x: x.legacy.query()),
    "synchronize the legacy stream": (906, "synchronize", "use another stream", lambda x: x.legacy.synchronize()),
    "let the legacy stream wait": (906, "wait event", "use another stream", lambda x: x.legacy.wait(x.inside())),
    "copy in the legacy stream": (906, "copy", "use another stream", lambda x: x.array.numpy()),
    "copy from pageable memory": (
        900,
        "copy",
        "use pinned memory",
        lambda x: x.array.copy_from(np.zeros(16, "u1"), x.s),
    ),
    "copy to pageable memory": (900, "copy", "use pinned memory", lambda x: x.array.copy_to(np.zeros(16, "u1"), x.s)),
    "a copy that waits": (900, "copy", "use pinned memory", lambda x: x.array.numpy(x.s)),
    "allocate": (900, "allocate", "before the capture, or capture in", lambda x: hs.empty(16, "u1")),
    "allocate pinned": (
        900,
        "allocate pinned memory",
        "before the capture, or capture in",
        lambda x: hs.pinned_empty(16, "u1"),
    ),
    "upload": (900, "upload graph", "before the capture begins", lambda x: x.run.upload(x.s)),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_G4_an_error_names_the_operation_the_line_the_stream_the_rule_and_the_remedy(name: str) -> None:
    rule, operation, remedy, call = ILLEGAL[name]
    x = Scene()
    title = f"stream {x.s.index} of device 0"
    line = rf"test_capture_errors\.py:{call.__code__.co_firstlineno + (2 if name == 'elapsed' else 0)}\b"
    if name.startswith("await"):
        line = r"test_capture_errors\.py:\d+\b"
    with pytest.raises(hs.CaptureError) as ended, hs.capture(x.s):
        x.s.nop()
        with pytest.raises(hs.CaptureError, match=re.escape(remedy)) as refused:
            call(x)
        assert refused.value.code == rule
        assert refused.value.operation == operation
        assert title in str(refused.value)
        with pytest.raises(hs.CaptureError, match=rf"{title} was invalidated at \S*{line}.*; end it") as later:
            x.s.nop()
        assert later.value.code == 901
    assert ended.value.code == 901
    assert re.search(rf"{title} was invalidated at \S*{line}: ", str(ended.value))
    assert str(refused.value) in str(ended.value)
    usable(x.s, x.o, x.legacy)


def test_G4_a_capture_in_the_way_of_another_call_is_named_with_the_line_of_its_begin() -> None:
    s = hs.Stream()
    begun = rf"stream {s.index} of device 0.*since its begin at \S*test_capture_errors\.py:\d+"
    other: list[hs.CaptureError] = []

    def end() -> None:
        with pytest.raises(hs.CaptureError) as caught:
            capture.__exit__(None, None, None)
        other.append(caught.value)

    capture = hs.capture(s)
    capture.__enter__()
    with pytest.raises(hs.CaptureError, match=begun) as again, hs.capture(s):
        pass
    assert again.value.code == 401
    thread = threading.Thread(target=end)
    thread.start()
    thread.join(LIMIT)
    assert re.search(begun, str(other[0]))
    with pytest.raises(hs.CaptureError, match=begun):
        hs.Device(0).default_stream.nop()
    with pytest.raises(hs.CaptureError, match="invalidated"):
        capture.__exit__(None, None, None)
    usable(s)


def test_G4_a_stream_that_takes_part_is_named_with_the_line_that_pulled_it_in() -> None:
    s, o = hs.Stream(), hs.Stream()
    with hs.capture(s) as graph:
        o.wait(s)
        with pytest.raises(hs.CaptureError) as caught, hs.capture(o):
            pass
        o.nop()
        s.wait(o)
    begin = _line(test_G4_a_stream_that_takes_part_is_named_with_the_line_that_pulled_it_in, 2)
    assert caught.value.code == 401
    assert re.search(
        rf"stream {o.index} of device 0 takes part in the capture of stream {s.index} of device 0 "
        rf"\(since its begin at \S*{begin}\), as it was pulled in at \S*:{int(begin.partition(':')[2]) + 1}\b",
        str(caught.value),
    )
    assert len(graph.nodes) == 1, "the capture goes on"
    usable(s, o)


def _line(function: Callable[..., object], offset: int) -> str:
    return f"test_capture_errors.py:{function.__code__.co_firstlineno + offset}"


@pytest.mark.parametrize("first", [True, False])
def test_G4_the_end_of_a_capture_names_the_close_of_a_stream_of_it(first: bool) -> None:
    s, o = hs.Stream(), hs.Stream()
    closed = s if first else o
    number, index = s.index, closed.index
    with pytest.raises(hs.CaptureError) as ended, hs.capture(s):
        o.wait(s)
        o.nop()
        s.wait(o)
        closed.close()
    assert ended.value.code == 901
    assert re.search(
        rf"capture of stream {number} of device 0 was invalidated at \S*test_capture_errors\.py:\d+: .*"
        rf"stream {index} of device 0 was closed; close it after the end of the capture",
        str(ended.value),
    )
    usable(o if first else s)


def test_G4_the_legacy_stream_does_not_join_a_capture_of_a_non_blocking_one() -> None:
    s, legacy = hs.Stream(non_blocking=True), hs.Device(0).default_stream
    with (
        pytest.raises(hs.CaptureError, match=r"invalidated at \S*test_capture_errors\.py:\d+.*cannot take part"),
        hs.capture(s),
    ):
        with pytest.raises(hs.CaptureError, match="use another stream") as caught:
            legacy.wait(s.record())
        assert caught.value.code == 906
    usable(s, legacy)


def test_G5_a_stream_that_waits_for_one_that_adds_a_node_is_refused_and_usable() -> None:
    s, graph = hs.Stream(), hs.Graph()

    def pulls_in(stream: hs.Stream) -> None:
        stream.nop()
        s.wait(stream)

    with pytest.raises(
        hs.CaptureError, match=rf"makes one node, so that stream {s.index}.*capture the two streams"
    ) as caught:
        graph.add(pulls_in)
    assert caught.value.code == 900
    usable(s)
    with pytest.raises(hs.CaptureError, match="the stream that adds a node to a graph"):
        graph.add(lambda stream: stream.synchronize())
    with pytest.raises(hs.InvalidValueError, match=r"no node 9, but \d nodes"):
        graph.add(lambda stream: stream.nop(), after=[9])


def test_G4_an_event_of_a_capture_that_was_invalidated_is_recorded_again() -> None:
    s, o = hs.Stream(), hs.Stream()
    with pytest.raises(hs.CaptureError), hs.capture(s):
        event = s.record()
        s.query()
    for call, rule in ((event.query, 907), (event.synchronize, 907), (lambda: o.wait(event), 905)):
        with pytest.raises(hs.CaptureError, match="record it") as caught:
            call()
        assert caught.value.code == rule
    o.record(event)
    event.synchronize(timeout=LIMIT)
    usable(s, o)
