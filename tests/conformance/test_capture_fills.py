"""Fills in captures: their order, their lines, and when none are taken."""

from __future__ import annotations

import re
import sys
import threading

import halstream as hs
import numpy as np
import pytest
from capture_help import LIMIT

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def launched(graph: hs.Graph, s: hs.Stream, *arrays: hs.Array) -> list[list[int]]:
    """Return what arrays have in them after a launch."""
    graph.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)
    return [np.asarray(array.numpy()).tolist() for array in arrays]


def test_G1_fills_are_nodes_in_their_order_whichever_memory_and_streams_they_are_of() -> None:
    streams = [hs.Stream() for _ in range(9)]
    arrays = [hs.zeros(8, "u1") for _ in range(18)]
    hs.synchronize()
    first, ran = sys._getframe().f_lineno + 7, []
    want: list[list[int]] = [[] for _ in arrays]
    with hs.capture(streams[0]) as graph:
        for s in streams[1:]:
            s.wait(streams[0])
        for i in range(2400):
            at, s = i // 4 % 18, streams[i // 4 % 9]  # the fills of an array are on one stream
            arrays[at].fill(i % 251, s)
            if i % 3 == 0:
                s.call(ran.append, i)
            want[at] = 8 * [i % 251]
        for s in streams[1:]:
            streams[0].wait(s)
    kinds = [kind for i in range(2400) for kind in (["fill", "call"] if i % 3 == 0 else ["fill"])]
    nodes = graph.nodes
    assert [node.kind for node in nodes] == kinds
    lines = [int(re.findall(r"test_capture_fills\.py:(\d+)", node.where)[0]) - first for node in nodes]
    assert lines == [0 if kind == "fill" else 2 for kind in kinds]
    latest: dict[int, int] = {}
    edges, n = [], 0
    for i in range(2400):
        for _ in range(2 if i % 3 == 0 else 1):
            on = i // 4 % 9
            edges += [(latest[on], n)] if on in latest else []
            latest[on] = n
            n += 1
    assert graph.edges == edges
    assert launched(graph, streams[0], *arrays) == want


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "i8"])
def test_G1_each_fill_has_its_value_and_its_part_of_the_memory(dtype: str) -> None:
    s, array = hs.Stream(), hs.zeros(12, dtype)
    hs.synchronize()
    values = [0, 1, 77, 100, 3]
    nothing, parts = array[:0], [array[2 * i : 2 * i + 2] for i in range(len(values))]
    with hs.capture(s) as graph:
        for part, value in zip(parts, values, strict=True):
            for _ in range(4):
                part.fill(value, s)
            nothing.fill(9, s)
    assert len(graph.nodes) == 4 * len(values)
    assert launched(graph, s, array) == [[v for value in values for v in (value, value)] + [0, 0]]


def test_G10_memory_that_was_freed_is_refused_by_the_fill_itself() -> None:
    s, a, b = hs.Stream(), hs.zeros(64, "u1"), hs.zeros(64, "u1")
    hs.synchronize()
    with hs.capture(s, "relaxed") as graph:
        for _ in range(3):
            a.fill(1, s)
            b.fill(1, s)
        a.free()
        for _ in range(2):
            with pytest.raises(hs.InvalidValueError, match="freed or never allocated"):
                a.fill(2, s)
            b.fill(3, s)
    assert len(graph.nodes) == 8
    with pytest.raises(
        hs.InvalidValueError, match=r"node 0 \(fill at .*test_capture_fills\.py:\d+\) works on were freed"
    ):
        graph.instantiate()


def test_G10_memory_that_another_thread_has_freed_is_refused_by_the_fill_itself() -> None:
    s, a = hs.Stream(), hs.zeros(64, "u1")
    hs.synchronize()
    with hs.capture(s, "relaxed"):
        for _ in range(3):
            a.fill(1, s)
        thread = threading.Thread(target=a.free)
        thread.start()
        thread.join(LIMIT)
        with pytest.raises(hs.InvalidValueError, match="freed or never allocated"):
            a.fill(2, s)


def test_G4_no_fill_is_added_to_a_capture_that_was_invalidated_or_has_ended() -> None:
    s, array = hs.Stream(), hs.zeros(4, "u1")
    hs.synchronize()
    with pytest.raises(hs.CaptureError, match="was invalidated"), hs.capture(s):
        for _ in range(3):
            array.fill(1, s)
        with pytest.raises(hs.CaptureError, match="query"):
            s.query()
        for _ in range(2):
            with pytest.raises(hs.CaptureError, match="was invalidated"):
                array.fill(3, s)
    with hs.capture(s) as graph:
        array.fill(5, s)
        array.fill(6, s)
    assert array.numpy().tolist() == [0] * 4
    array.fill(7, s)
    s.synchronize(timeout=LIMIT)
    assert array.numpy().tolist() == [7] * 4
    assert len(graph.nodes) == 2


def test_G1_captures_of_two_streams_at_once_keep_their_fills_apart() -> None:
    a, b, array = hs.Stream(), hs.Stream(), hs.zeros(4, "u1")
    hs.synchronize()
    with hs.capture(a) as one, hs.capture(b) as two:
        for i in range(24):
            array.fill(i, a if i % 8 < 4 else b)
    assert [len(graph.nodes) for graph in (one, two)] == [12, 12]
    assert launched(one, a, array) == [[19] * 4]
    assert launched(two, a, array) == [[23] * 4]


def test_G1_a_fill_is_seen_by_who_listens_from_then_on() -> None:
    s, array = hs.Stream(), hs.zeros(4, "u1")
    hs.synchronize()
    with hs.capture(s, "relaxed") as graph:
        for _ in range(4):
            array.fill(1, s)
        with hs.sanitize():
            array.fill(3, s)
        for _ in range(4):
            array.fill(5, s)
    assert len(graph.nodes) == 9
    assert all(re.search(r"test_capture_fills\.py:\d+", node.where) for node in graph.nodes)
    assert launched(graph, s, array) == [[5] * 4]
