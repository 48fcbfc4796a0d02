"""Programs with graphs in which a wait is missing, each with its twin that has it."""

from __future__ import annotations

from typing import NamedTuple

BEGIN = """
import ctypes
import halstream as hs
main, side = hs.Stream(), hs.Stream()
x, y, pinned = hs.empty(64, "u1"), hs.empty(64, "u1"), hs.pinned_empty(64, "u1")
done = hs.Event()
def clear(array): array[:] = 0
hs.host_access(pinned, "w")
pinned[:] = 1
hs.synchronize()
"""


class Program(NamedTuple):
    """A program; ``{wait}`` in its text is the wait that is missing in the wrong one."""

    name: str
    text: str
    wait: str
    lines: tuple[str, str]  #: comments on the lines that a report names


INSIDE = [
    Program(
        "fork before the write",
        """
        with hs.capture(main) as graph:
            side.wait(main)
            x.fill(1, main)  # one
            {wait}
            y.copy_from(x, side)  # two
            main.wait(side)
        """,
        "side.wait(main)", ("one", "two"),
    ),
    Program(
        "join behind the read",
        """
        with hs.capture(main) as graph:
            side.wait(main)
            x.fill(1, side)  # one
            {wait}
            y.copy_from(x, main)  # two
            main.wait(side)
        """,
        "main.wait(side)", ("one", "two"),
    ),
    Program(
        "function beside the copy",
        """
        with hs.capture(main) as graph:
            side.wait(main)
            x.copy_from(pinned, main)  # one
            {wait}
            side.call(clear, x, writes=[x])  # two
            main.wait(side)
        """,
        "side.wait(main)", ("one", "two"),
    ),
    Program(
        "added without an edge",
        """
        graph = hs.Graph()
        one = graph.add(lambda s: x.fill(1, s))  # one
        two = graph.add(lambda s: x.fill(2, s))  # two
        {wait}
        graph.instantiate()
        """,
        "graph.add_edge(one, two)", ("one", "two"),
    ),
    Program(
        "added to a captured one",
        """
        with hs.capture(main) as graph:
            x.fill(1, main)  # one
        two = graph.add(lambda s: y.copy_from(x, s))  # two
        {wait}
        graph.instantiate()
        """,
        "graph.add_edge(0, two)", ("one", "two"),
    ),
    Program(
        "a graph in a graph",
        """
        with hs.capture(main) as inner:
            x.fill(1, main)  # one
        graph = hs.Graph()
        one = graph.add_graph(inner)
        two = graph.add(lambda s: x.fill(2, s))  # two
        {wait}
        graph.instantiate()
        """,
        "graph.add_edge(one, two)", ("one", "two"),
    ),
]  # fmt: skip

BETWEEN = [
    Program(
        "read behind a launch",
        """
        with hs.capture(main) as graph:
            y.fill(1, main)
            x.fill(1, main)  # one
        graph.instantiate().launch(main)
        {wait}
        y.copy_from(x, side)  # two
        """,
        "side.wait(main)", ("one", "two"),
    ),
    Program(
        "write before a launch",
        """
        with hs.capture(main) as graph:
            y.copy_from(x, main)  # two
        run = graph.instantiate()
        x.fill(1, side)  # one
        {wait}
        run.launch(main)
        """,
        "main.wait(side)", ("one", "two"),
    ),
    Program(
        "launches of two graphs",
        """
        with hs.capture(main) as first:
            x.fill(1, main)  # one
        with hs.capture(main) as second:
            y.copy_from(x, main)  # two
        first.instantiate().launch(main)
        {wait}
        second.instantiate().launch(side)
        """,
        "side.wait(main)", ("one", "two"),
    ),
    Program(
        "memory freed under a launch",
        """
        x = hs.empty(64, "u1", stream=main)
        hs.synchronize()
        with hs.capture(main) as graph:
            y.copy_from(x, main)  # one
        graph.instantiate().launch(main)
        {wait}
        x.free(side)  # two
        """,
        "side.wait(main)", ("one", "two"),
    ),
    Program(
        "host reads before the end",
        """
        with hs.capture(main) as graph:
            x.copy_to(pinned, main)  # one
        graph.instantiate().launch(main)
        {wait}
        hs.host_access(pinned, "r")  # two
        """,
        "main.synchronize()", ("one", "two"),
    ),
    Program(
        "host refills before the end",
        """
        with hs.capture(main) as graph:
            x.copy_from(pinned, main)  # one
        graph.instantiate().launch(main)
        {wait}
        hs.host_access(pinned, "w")  # two
        pinned[:] = 2
        """,
        "main.synchronize()", ("one", "two"),
    ),
    Program(
        "behind the event, not the node",
        """
        with hs.capture(main) as graph:
            x.fill(1, main)
            main.record_external(done)
            y.fill(1, main)  # one
        graph.instantiate().launch(main)
        side.wait(done)
        {wait}
        x.fill(2, side)
        y.fill(2, side)  # two
        """,
        "side.wait(main)", ("one", "two"),
    ),
    Program(
        "before the wait of a node",
        """
        with hs.capture(main) as graph:
            {wait}
            x.fill(1, main)  # two
            main.wait_external(done)
            y.fill(1, main)
        run = graph.instantiate()
        x.fill(2, side)  # one
        y.fill(2, side)
        side.record(done)
        run.launch(main)
        """,
        "main.wait_external(done)", ("one", "two"),
    ),
]  # fmt: skip

# Only a deterministic schedule sees what a function writes, and when a source has changed.
OBSERVED = [
    Program(
        "a function that says nothing",
        """
        at = x.ptr
        with hs.capture(main) as graph:
            side.wait(main)
            x.fill(1, main)  # one
            {wait}
            side.call(lambda: ctypes.memset(at, 0, 64))  # two
            main.wait(side)
        graph.instantiate().launch(main)
        """,
        "side.wait(main)", ("one", "two"),
    ),
    Program(
        "refilled without a word",
        """
        with hs.capture(main) as graph:
            x.copy_from(pinned, main)  # one
        graph.instantiate().launch(main)
        {wait}
        pinned[:] = 3
        """,
        "main.synchronize()", ("one", ""),
    ),
]  # fmt: skip
