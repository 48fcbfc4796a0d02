"""Traces of real programs, read back with Perfetto's own messages."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream import _native
from halstream._traces.perfetto import build
from halstream._traces.recording import Recording
from perfetto_help import Trace

LIMIT = 10.0


@pytest.fixture
def record(backend: str) -> Iterator[Callable[[], Trace]]:
    """Record from here on; the function ends it and returns the trace, checked."""
    recording = Recording()
    done: list[Trace] = []

    def finish() -> Trace:
        lines, executed = recording.finish()
        trace = Trace(build(lines, executed, _native.position_text))
        trace.check()
        done.append(trace)
        return trace

    yield finish
    if not done:
        recording.finish()


@pytest.mark.needs("times")
def test_a_program_on_two_devices(record: Callable[[], Trace], hold: Callable[[Any], Any]) -> None:
    """Random records and waits; gates make some of the waits really wait."""
    pick = random.Random(7)
    streams = [hs.Stream(i % 2) for i in range(6)] + [hs.Device(0).default_stream]
    events = [hs.Event(device=i % 2) for i in range(6)]
    gates = [hold(streams[0]), hold(streams[3])]
    expected: set[tuple[tuple[int, int], tuple[int, int]]] = set()
    recorded: dict[int, tuple[int, int]] = {}  # event: stream and position there
    counts = [1, 0, 0, 1, 0, 0, 0]
    for step in range(400):
        s = pick.randrange(len(streams))
        e = pick.randrange(len(events))
        kind = pick.choice(["record", "wait", "nop"])
        if kind == "record" and streams[s].device == hs.Device(e % 2):
            streams[s].record(events[e])
            recorded[e] = (s, counts[s])
        elif kind == "wait" and e in recorded:
            streams[s].wait(events[e])
            expected.add((recorded[e], (s, counts[s])))
        else:
            streams[s].nop()
        counts[s] += 1
        if step == 300:
            for gate in gates:
                gate.open()
    for stream in streams:
        stream.synchronize(timeout=LIMIT)
    trace = record()
    # The position of each operation on its stream, by number: what a flow joins.
    place = {}
    for at, stream in enumerate(streams):
        name = f"stream {stream.index}" if stream.index else "default stream"
        operations = [s for s in trace.on(f"device {stream.device.ordinal} / {name}") if s.category == "stream"]
        numbers = sorted(s.args["id"] for s in operations)
        assert len(numbers) == counts[at]
        place.update({number: (at, i) for i, number in enumerate(numbers)})
    assert {(place[source], place[target]) for source, target in trace.edges()} == expected
    assert {s.name for s in trace.of("blocked")} >= {"blocked: waits for a gate"}


def test_where_operations_come_from(record: Callable[[], Trace]) -> None:
    stream = hs.Stream()

    def enqueue() -> None:
        stream.nop()

    enqueue()
    stream.synchronize(timeout=LIMIT)
    (nop,) = record().of("stream")
    assert nop.place == (__file__, enqueue.__code__.co_firstlineno + 1, "enqueue") or (
        nop.place is not None and nop.place[0] == __file__ and nop.place[2].endswith("enqueue")
    )


@pytest.mark.needs("times")
def test_a_stream_behind_a_gate_is_blocked(record: Callable[[], Trace], hold: Callable[[Any], Any]) -> None:
    held, waiting = hs.Stream(), hs.Stream()
    gate = hold(held)
    waiting.wait(held.record())
    waiting.nop()
    assert not waiting.query()
    gate.open()
    waiting.synchronize(timeout=LIMIT)
    trace = record()
    slices = trace.on(f"device 0 / stream {waiting.index}")
    # On a busy machine each operation may wait for its turn as well.
    names = [s.name.rstrip("0123456789") for s in slices if s.name != "blocked: waits for its turn"]
    assert names == ["blocked: waits for event ", "wait event ", "nop"]


def test_memory_of_real_buffers(record: Callable[[], Trace]) -> None:
    stream = hs.Stream()
    pinned, buffer = hs.pinned_empty(1000, "u1"), hs.empty(3000, "u1")
    buffer[:1000].copy_from(pinned, stream)
    stream.synchronize(timeout=LIMIT)
    del buffer
    hs._memory.pool_stats(0)  # type: ignore[attr-defined]  # completes the frees that ended
    trace = record()
    lives = {s.name: s for s in trace.of("memory")}
    assert {"1000 bytes", "3000 bytes"} <= lives.keys()
    assert lives["1000 bytes"].end == math.inf and lives["3000 bytes"].end < math.inf
    (copy,) = [s for s in trace.of("stream") if s.name == "copy"]
    assert (copy.args["bytes read"], copy.args["bytes written"]) == (1000, 1000)


@pytest.mark.needs("times")
def test_an_unfinished_program(record: Callable[[], Trace], monkeypatch: pytest.MonkeyPatch, hold: Any) -> None:
    monkeypatch.setattr("halstream._traces.recording._DRAIN_S", 0.0)
    stream = hs.Stream()
    hold(stream)
    stream.nop()
    trace = record()
    (one,) = (s for s in trace.on(f"device 0 / stream {stream.index}") if not s.instant)
    assert (one.name, one.end, one.args["operations behind"]) == ("blocked: waits for a gate", math.inf, 1)


@pytest.mark.needs("times", "graphs")
def test_O7_a_launch_is_shown_with_its_nodes(record: Callable[[], Trace]) -> None:
    main, side = hs.Stream(), hs.Stream()
    x, y = hs.empty(1 << 16, "u1"), hs.empty(1 << 16, "u1")
    hs.synchronize()
    with hs.capture(main) as graph:
        side.wait(main)
        x.fill(1, main)
        y.fill(2, side)
        main.wait(side)
        x.copy_from(y, main)
    run = graph.instantiate()
    for _ in range(2):
        run.launch(main)
    main.synchronize(timeout=LIMIT)
    trace = record()
    launches = [one for one in trace.slices if one.name == "launch graph" and one.category == "stream"]
    assert len(launches) == 2
    for launch in launches:
        nodes = [n for n in trace.slices if n.category == "node" and n.args["launch"] == launch.args["id"]]
        assert sorted((n.name, n.args["branch"]) for n in nodes) == [("copy", 0), ("fill", 0), ("fill", 1)]
        for node in nodes:
            assert node.track == f"{launch.track} / branch {node.args['branch']}"
            assert launch.begin <= node.begin <= node.end <= launch.end
            assert node.place is not None and node.place[0] == __file__
        copy = next(n for n in nodes if n.name == "copy")
        assert all(n.end <= copy.begin for n in nodes if n is not copy)


@pytest.mark.needs("times", "graphs")
def test_O7_a_loop_is_shown_as_one_node(record: Callable[[], Trace]) -> None:
    main, left, x = hs.Stream(), hs.Condition(3), hs.empty(64, "u1")

    def less() -> None:
        left.value -= 1

    body, graph = hs.Graph(), hs.Graph()
    body.add(lambda stream: x.fill(1, stream), after=[body.add(lambda stream: stream.call(less))])
    graph.add_while(left, body)
    graph.instantiate().launch(main)
    main.synchronize(timeout=LIMIT)
    assert [(one.name, one.args["branch"]) for one in record().of("node")] == [("while", 0)]
