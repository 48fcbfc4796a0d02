"""Captures: what becomes a node, joins, what a capture forbids, and how streams are usable afterwards."""

from __future__ import annotations

import functools
import gc
import re
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from capture_help import LIMIT, usable
from halstream import _native

Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def test_G1_captured_work_becomes_nodes_and_does_not_run() -> None:
    s, ran = hs.Stream(), []
    with hs.capture(s) as graph:
        assert s.capturing
        s.call(ran.append, 1)
        s.nop()
        s.call_many([(ran.append, 2), (ran.append, 3)])
    assert not s.capturing
    assert [(n.kind, n.index) for n in graph.nodes] == [("call", 0), ("empty", 1), ("call", 2), ("call", 3)]
    assert graph.nodes[0].function == ran.append
    assert graph.edges == [(0, 1), (1, 2), (2, 3)]
    assert "test_capture.py" in graph.nodes[0].where
    usable(s)
    assert ran == []


def test_G1_a_fill_with_elements_of_eight_bytes_is_captured_and_keeps_its_source() -> None:
    s, x = hs.Stream(), hs.zeros(1000, np.float64)
    hs.synchronize()
    with hs.capture(s) as graph:
        x.fill(1.5, s)
    gc.collect()
    other = hs.pinned_empty(1000, np.float64)  # in the place of the source, if that was freed
    other[:] = 7
    run = graph.instantiate()
    for _ in range(2):
        x.copy_from(other, s)
        run.launch(s)
        assert (x.numpy(s) == 1.5).all()


@pytest.mark.parametrize("whole", [False, True])
def test_G1_each_node_has_the_line_that_enqueued_it(whole: bool, request: pytest.FixtureRequest) -> None:
    if whole:  # as the commands of halstream do, which keep whole stacks
        _native.positions(1)
        request.addfinalizer(lambda: _native.positions(-1))
    s, other, e = hs.Stream(), hs.Stream(), hs.Event()

    def deeper(stream: hs.Stream) -> None:
        stream.nop()

    here = sys._getframe().f_lineno
    with hs.capture(s) as graph:
        s.nop()
        s.nop()
        s.call(print)
        for _ in range(2):
            deeper(s)
        s.record(e)
        other.wait(e)
        other.call(print)
        s.wait(other)
    lines = [int(re.findall(r"test_capture\.py:(\d+)", node.where)[0]) - here for node in graph.nodes]
    assert lines == [2, 3, 4, -2, -2, 9]


def test_G1_functions_behind_others_become_nodes(hold: Hold) -> None:
    s, ran = hs.Stream(), []
    gate = hold(s)
    s.call(ran.append, "before")
    with hs.capture(s) as graph:
        s.call(ran.append, "captured")
    assert len(graph.nodes) == 1
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert ran == ["before"]


def test_G1_a_capture_begins_and_ends_once() -> None:
    s = hs.Stream()
    with hs.capture(s), pytest.raises(hs.CaptureError, match="captures already"), hs.capture(s):
        pass
    with pytest.raises(hs.CaptureError, match="legacy default stream"), hs.capture(hs.Stream._default(0)):
        pass
    with pytest.raises(hs.InvalidValueError, match="thread_local"):
        hs.capture(s, "strict")
    with pytest.raises(TypeError):
        hs.capture(None)  # type: ignore[arg-type]
    usable(s)


@pytest.mark.parametrize(("mode", "mine", "theirs"), [("global", 0, 0), ("thread_local", 0, 1), ("relaxed", 1, 1)])
def test_G2_unsafe_calls_are_refused_by_mode(mode: str, mine: int, theirs: int) -> None:
    s = hs.Stream()

    def allocate(allowed: int) -> None:
        if allowed:
            hs.pinned_empty(16, "u1")
        else:
            with pytest.raises(hs.CaptureError, match="unsafe") as caught:
                hs.pinned_empty(16, "u1")
            assert caught.value.code == 900

    failed: list[BaseException] = []

    def other() -> None:
        try:
            allocate(theirs)
        except BaseException as exc:
            failed.append(exc)

    def captured(body: Callable[[], None], allowed: int) -> None:
        if allowed:
            with hs.capture(s, mode):
                body()
        else:
            with pytest.raises(hs.CaptureError, match=r"(?s)invalidated.*unsafe"), hs.capture(s, mode):
                body()

    def elsewhere() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(LIMIT)
        assert not thread.is_alive()

    captured(lambda: allocate(mine), mine)
    captured(elsewhere, theirs)
    assert not failed
    usable(s)


def test_G3_a_stream_that_waits_takes_part_and_is_joined() -> None:
    a, b = hs.Stream(), hs.Stream(non_blocking=True)
    with hs.capture(a) as graph:
        a.nop()
        event = a.record()
        a.nop()
        b.wait(event)
        assert b.capturing
        b.nop()
        a.wait(b)
        a.nop()
    assert graph.edges == [(0, 1), (0, 2), (1, 3), (2, 3)]
    usable(a, b)


def test_G3_a_stream_that_is_not_joined_is_named_with_its_line() -> None:
    a, b = hs.Stream(), hs.Stream()
    text = rf"stream {b.index} .*test_capture.py:\d+ and never rejoined"
    with pytest.raises(hs.CaptureError, match=text) as caught, hs.capture(a):
        b.wait(a)
        b.call(print)
    assert caught.value.code == 904
    usable(a, b)


def _device(s: hs.Stream, e: hs.Event, before: hs.Event, o: hs.Stream) -> None:
    hs.synchronize()


FORBIDDEN: dict[str, tuple[int, Callable[[hs.Stream, hs.Event, hs.Event, hs.Stream], object]]] = {
    "query": (900, lambda s, e, before, o: s.query()),
    "synchronize": (900, lambda s, e, before, o: s.synchronize()),
    "synchronize a device": (900, _device),
    "query an event": (907, lambda s, e, before, o: e.query()),
    "synchronize an event": (907, lambda s, e, before, o: e.synchronize()),
    "wait for an event from before": (905, lambda s, e, before, o: s.wait(before)),
    "wait for a stream outside": (905, lambda s, e, before, o: s.wait(o)),
    "legacy default stream": (906, lambda s, e, before, o: hs.Stream._default(0).nop()),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_G4_a_forbidden_call_invalidates_the_capture(name: str, hold: Hold) -> None:
    rule, call = FORBIDDEN[name]
    s, o = hs.Stream(), hs.Stream()
    hold(o)
    before = o.record()
    ran: list[int] = []
    with pytest.raises(hs.CaptureError, match="invalidated") as caught, hs.capture(s):
        s.call(ran.append, 1)
        inside = s.record()
        with pytest.raises(hs.CaptureError) as refused:
            call(s, inside, before, o)
        assert refused.value.code == rule
        with pytest.raises(hs.CaptureError, match="invalidated") as again:
            s.call(ran.append, 2)
        assert again.value.code == 901
    assert str(refused.value) in str(caught.value), "the end gives the cause"
    assert "test_capture.py" in str(caught.value), "and its line"
    assert ran == []
    usable(s)


def test_G4_an_event_of_a_capture_that_ended_is_recorded_again() -> None:
    s, o = hs.Stream(), hs.Stream()
    with hs.capture(s):
        event = s.record()
    with pytest.raises(hs.CaptureError):
        event.query()
    with pytest.raises(hs.CaptureError) as caught:
        o.wait(event)
    assert caught.value.code == 905
    s.record(event)
    o.wait(event)
    o.synchronize(timeout=LIMIT)
    assert event.query()


def test_G4_closing_a_stream_ends_its_part() -> None:
    a, b = hs.Stream(), hs.Stream()
    with pytest.raises(hs.CaptureError, match="was closed"), hs.capture(a):
        b.wait(a)
        b.close()
    usable(a)
    with pytest.raises(hs.HalError), hs.capture(b := hs.Stream()):
        b.close()
    hs.Stream._default(0).nop()  # no stream captures any more


def test_G4_a_stream_that_was_dropped_leaves_its_capture() -> None:
    """Of a capture whose first stream is gone nothing is left; of another one it goes on."""
    from halstream.cupy import cuda  # whose captures are no statements of Python that would keep the stream

    device, kept, released = hs.Device(0), functools.partial(int), threading.Event()
    weakref.finalize(kept, released.set)
    for drain in (False, True):
        first, side = cuda.Stream(), hs.Stream()
        first.begin_capture()
        first.call(kept)
        side.wait(first)
        with pytest.raises(hs.CaptureError):
            device.default_stream.nop()
        del first
        if drain:
            hs.Graph()
        device.default_stream.nop()
        device.synchronize(timeout=LIMIT)
        usable(side)
    del kept
    assert released.wait(LIMIT), "the lost graph keeps its function"

    origin, side = hs.Stream(), hs.Stream()
    with hs.capture(origin) as graph:
        side.wait(origin)
        side.nop()
        origin.wait(side)
        del side
        origin.nop()
    assert len(graph.nodes) == 2
    with pytest.raises(hs.CaptureError, match="never rejoined"), hs.capture(origin):
        side = hs.Stream()
        side.wait(origin)
        side.nop()
        del side
    usable(origin)


def test_G7_external_events_order_graphs_with_other_work(hold: Hold, settle: Callable[[], None]) -> None:
    s, o, ran = hs.Stream(), hs.Stream(), []
    arrived, left = hs.Event(), hs.Event()
    with hs.capture(s) as graph:
        s.wait_external(arrived)
        s.call(ran.append, 1)
        s.record_external(left)
    assert [n.kind for n in graph.nodes] == ["wait", "call", "record"]
    run = graph.instantiate()
    for i in range(1, 3):
        gate = hold(o)
        o.record(arrived)
        run.launch(s)
        settle()
        assert len(ran) == i - 1
        gate.open()
        o.wait(left)
        s.synchronize(timeout=LIMIT)
        o.synchronize(timeout=LIMIT)
        assert len(ran) == i
        assert left.query()


def test_G14_an_event_made_as_external_is_so_in_every_capture(hold: Hold, settle: Callable[[], None]) -> None:
    from halstream.torch import cuda  # the dialect whose events may be made so

    s, o, ran = hs.Stream(), hs.Stream(), []
    arrived, left = cuda.Event(external=True), cuda.Event(external=True)
    with hs.capture(s) as graph:
        s.wait(arrived)
        s.call(ran.append, 1)
        s.record(left)
    assert [n.kind for n in graph.nodes] == ["wait", "call", "record"]
    run = graph.instantiate()
    gate = hold(o)
    o.record(arrived)  # outside of a capture it is as any other
    run.launch(s)
    settle()
    assert not ran
    gate.open()
    o.wait(left)
    o.synchronize(timeout=LIMIT)
    assert ran == [1]


@pytest.mark.parametrize("mode", ["global", "thread_local"])
def test_G2_another_thread_does_not_end_a_capture(mode: str) -> None:
    s, failed = hs.Stream(), []
    capture = hs.capture(s, mode)
    capture.__enter__()

    def end() -> None:
        try:
            capture.__exit__(None, None, None)
        except hs.CaptureError as exc:
            failed.append(exc)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join(LIMIT)
    assert [exc.code for exc in failed] == [908]
    assert "another thread began this capture of" in str(failed[0])
    assert s.capturing
    _graph_end(capture)
    usable(s)


def test_G2_any_thread_ends_a_relaxed_capture() -> None:
    s = hs.Stream()
    capture = hs.capture(s, "relaxed")
    graph = capture.__enter__()
    s.nop()
    thread = threading.Thread(target=_graph_end, args=[capture])
    thread.start()
    thread.join(LIMIT)
    assert [node.kind for node in graph.nodes] == ["empty"]
    usable(s)


def _graph_end(capture: hs.capture) -> None:
    capture.__exit__(None, None, None)


def test_G4_a_wait_in_one_capture_for_another_invalidates_both() -> None:
    a, b = hs.Stream(), hs.Stream()
    with pytest.raises(hs.CaptureError, match="two captures cannot be merged"), hs.capture(a):
        with pytest.raises(hs.CaptureError, match=r"invalidated.*two captures") as ended, hs.capture(b):
            with pytest.raises(hs.CaptureError) as caught:
                a.wait(b)
            assert caught.value.code == 902
        assert ended.value.code == 901
    usable(a, b)


def test_G4_pageable_memory_and_a_copy_that_waits_are_refused() -> None:
    s, array = hs.Stream(), hs.zeros(64, "u1")
    hs.synchronize()
    for call in (lambda: array.copy_from(np.zeros(64, np.uint8), s), lambda: array.numpy(s)):
        with (
            pytest.raises(hs.CaptureError, match=r"invalidated.*test_capture.py:\d+") as caught,
            hs.capture(s, "relaxed"),
        ):
            with pytest.raises(hs.CaptureError) as refused:
                call()
            assert refused.value.code in (900, 901)
        assert caught.value.code == 901
        usable(s)
