"""Random programs over streams: captured and launched, they do what they do at once.

They fill, copy, call functions, take memory in the order of a stream, and launch graphs.

Before an operation its stream waits for every stream that has worked on the same
buffers, so that a program has one right result.
"""

from __future__ import annotations

from typing import Any

import halstream as hs
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs", "host")]

LIMIT = 30.0
STREAMS = 3
BUFFERS = 4
SIZE = 5000  # more than what is copied without an engine
LAUNCHES = 10

streams = st.integers(0, STREAMS - 1)
buffers = st.integers(0, BUFFERS - 1)
steps = st.one_of(
    st.tuples(st.just("fill"), streams, buffers, st.integers(0, 255)),
    st.tuples(st.just("copy"), streams, buffers, buffers),
    st.tuples(st.just("add"), streams, buffers, st.integers(1, 255)),
    st.tuples(st.just("through"), streams, buffers, buffers),  # memory that the stream allocates and frees
    st.tuples(st.just("graph"), streams, buffers, st.integers(1, 255)),
)


def add(array: Any, number: int) -> None:
    """Add to all bytes, which wrap around."""
    array += np.uint8(number)


def enqueue(program: list[tuple[str, int, int, int]], lines: list[hs.Stream], memory: list[hs.Array]) -> None:
    """Enqueue a program; all streams come after the first one, which comes after all of them in the end."""
    for line in lines[1:]:
        line.wait(lines[0])
    users: list[set[int]] = [set() for _ in memory]
    for what, on, target, number in program:
        copies = what in ("copy", "through")
        touched = {target, number} if copies else {target}
        if copies and target == number:
            continue
        for other in set().union(*(users[i] for i in touched)) - {on}:
            lines[on].wait(lines[other])
        for i in touched:
            users[i].add(on)
        if what == "fill":
            memory[target].fill(number, lines[on])
        elif what == "copy":
            memory[target].copy_from(memory[number], lines[on])
        elif what == "through":
            between = hs.empty(SIZE, "u1", stream=lines[on])
            between.copy_from(memory[number], lines[on])
            memory[target].copy_from(between, lines[on])
            between.free()
        elif what == "graph":
            inner = hs.Graph()
            first = inner.add(lambda t, array=memory[target], value=number: array.fill(value, t))
            inner.add(lambda t, array=memory[target], value=number: t.call(add, array, value), after=[first])
            inner.instantiate().launch(lines[on])
        else:
            lines[on].call(add, memory[target], number)
    for line in lines[1:]:
        lines[0].wait(line)


def result(memory: list[hs.Array], line: hs.Stream) -> list[bytes]:
    line.synchronize(timeout=LIMIT)
    return [array.numpy().tobytes() for array in memory]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=st.lists(steps, max_size=25), on=streams)
def test_G8_a_captured_program_does_what_it_does_at_once(program: list[tuple[str, int, int, int]], on: int) -> None:
    outcomes = []
    for captured in (False, True):
        lines = [hs.Stream(non_blocking=True) for _ in range(STREAMS)]
        memory = [hs.zeros(SIZE, "u1") for _ in range(BUFFERS)]
        hs.synchronize()
        if captured:
            with hs.capture(lines[0]) as graph:
                enqueue(program, lines, memory)
            run = graph.instantiate()
            for _ in range(LAUNCHES):
                run.launch(lines[on])
            outcomes.append(result(memory, lines[on]))
        else:
            for _ in range(LAUNCHES):
                enqueue(program, lines, memory)
            outcomes.append(result(memory, lines[0]))
    assert outcomes[0] == outcomes[1]
