"""What reports and limits say of launches of graphs."""

from __future__ import annotations

import threading

import halstream as hs
import pytest
from halstream.testing import Gate
from stall_help import LIMIT, chain, looks  # noqa: F401

pytestmark = [pytest.mark.needs("stalls"), pytest.mark.needs("graphs")]


def test_W6_a_launch_behind_an_earlier_one_of_its_executable_says_so() -> None:
    main, side = hs.Stream(), hs.Stream()
    gate = Gate(side)
    with hs.capture(main) as graph:
        main.nop()
    run = graph.instantiate()
    run.launch(side)
    run.launch(main)
    try:
        with pytest.raises(hs.StallError) as exc:
            main.synchronize()
        chain(exc, "a launch of a graph, behind an earlier launch of the same executable")
    finally:
        gate.open()
        main.synchronize(timeout=LIMIT)


def test_W6_a_limit_names_what_the_body_of_a_node_is_at() -> None:
    stream, release = hs.Stream(), threading.Event()
    with hs.capture(stream) as body:
        stream.call(release.wait)
    graph = hs.Graph()
    graph.add_if(hs.Condition(1), body)
    graph.instantiate().launch(stream)
    try:
        line = r"at \S*test_stall_graph\.py:\d+"
        text = rf"a graph, at node 0 \(if {line}\), the body of a node of a graph, at node 0 \(call {line}\), host f"
        with pytest.raises(hs.WaitTimeoutError, match=text):
            stream.synchronize(timeout=0.2)
    finally:
        release.set()
        stream.synchronize(timeout=LIMIT)


def test_W6_a_limit_names_the_node_that_a_launch_is_at() -> None:
    stream, release = hs.Stream(), threading.Event()
    with hs.capture(stream) as graph:
        stream.nop()
        stream.call(release.wait)
    graph.instantiate().launch(stream)
    try:
        with pytest.raises(
            hs.WaitTimeoutError,
            match=r"a launch of a graph, at node 1 \(call at \S*test_stall_graph\.py:\d+\), host function",
        ):
            stream.synchronize(timeout=0.2)
    finally:
        release.set()
        stream.synchronize(timeout=LIMIT)
