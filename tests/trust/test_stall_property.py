"""W2: standard events cannot make streams wait for each other in a circle.

A wait binds to a record that was made before it, and the legacy order looks back
as well, so every operation waits for earlier calls only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import halstream as hs
import pytest
from halstream import _native
from halstream.testing import Gate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.needs("stalls")

LIMIT = 20.0
STREAMS, EVENTS = 5, 4


class Call(NamedTuple):
    """A call of a random program: what, on which stream, with which event or other stream."""

    kind: str
    stream: int
    other: int


calls = st.lists(
    st.builds(
        Call,
        st.sampled_from(["record", "wait", "wait stream", "nop", "call", "gate", "open", "legacy", "query"]),
        st.integers(0, STREAMS - 1),
        st.integers(0, max(STREAMS, EVENTS) - 1),
    ),
    max_size=60,
)


def play(program: list[Call], waits: list[int]) -> None:
    """Make the calls, open what is still closed, and wait without a limit as often as asked."""
    # Two devices, and one stream that takes no part in the legacy order.
    streams = [hs.Stream(i % 2, non_blocking=i == 0) for i in range(STREAMS)]
    events: list[Any] = [None] * EVENTS
    gates: list[Gate] = []
    for kind, at, other in program:
        stream = streams[at]
        if kind == "record":
            events[other % EVENTS] = stream.record()
        elif kind == "wait" and events[other % EVENTS] is not None:
            stream.wait_event(events[other % EVENTS])
        elif kind == "wait stream":
            stream.wait_stream(streams[other % STREAMS])
        elif kind == "nop":
            stream.nop()
        elif kind == "call":
            stream.call(int)
        elif kind == "gate":
            gates.append(Gate(stream))
        elif kind == "open" and gates:
            gates.pop(other % len(gates)).open()
        elif kind == "legacy":
            hs.Device(other % 2).default_stream.nop()
        elif kind == "query":
            stream.query()
    for gate in gates:
        gate.open()
    for at in waits:
        streams[at].synchronize()
    for event in events:
        if event is not None:
            event.synchronize()
    for device in hs.devices():
        device.synchronize()


@pytest.mark.parametrize("schedule", ["parallel", "latest", "random 7"])
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=calls, waits=st.lists(st.integers(0, STREAMS - 1), max_size=3))
def test_W2_programs_of_standard_events_always_end(
    backend: str, schedule: str, program: list[Call], waits: list[int]
) -> None:
    _native.schedule_set(schedule)
    try:
        play(program, waits)
    finally:
        for device in hs.devices():
            device.synchronize(timeout=LIMIT)
        _native.schedule_set("parallel")
