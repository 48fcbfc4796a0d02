"""V43, V44: the line that a report on two nodes of a graph proposes."""

from __future__ import annotations

from pathlib import Path

import halstream as hs
import pytest
from sanitize_help import mended, run

pytestmark = pytest.mark.needs("graphs")

UNDECLARED = """
    import halstream as hs
    main, side = hs.Stream(), hs.Stream()
    x = hs.zeros(4, "f4")
    hs.synchronize()
    def put(array): array[:] = 3
    def get(array): array.sum()
    with hs.capture(main) as graph:
        side.wait(main)
        main.call(put, x)
        side.call(get, x)
        main.wait(side)
    graph.instantiate().launch(main)
    hs.synchronize()
    """


@pytest.mark.needs("host")
@pytest.mark.parametrize(
    "calls", [("main.call(put, x)", "side.call(get, x)"), ("side.call(get, x)", "main.call(put, x)")]
)
def test_V44_an_undeclared_write_comes_in_the_order_of_the_program(calls: tuple[str, str], tmp_path: Path) -> None:
    first, second = calls
    source = (
        UNDECLARED.replace("main.call(put, x)", "1")
        .replace("side.call(get, x)", second)
        .replace("    1\n", f"    {first}\n")
    )
    (found,) = run(tmp_path / "undeclared.py", source)
    assert [one.node.number for one in (found.first, found.second)] == [0, 1]
    one, two = (call.partition(".")[0] for call in calls)
    assert found.fix == f"{two}.wait({one}.record())"
    assert "before " in str(found).partition("fix:")[2]
    assert not run(tmp_path / "mended.py", mended(source, found))


BUILT = """
    import halstream as hs
    x, y = hs.empty(64, "f4"), hs.empty(64, "f4")
    hs.synchronize()
    graph = hs.Graph()
    graph.add(lambda s: x.fill(1, s))
    graph.add(lambda s: y.copy_from(x, s))
    graph.instantiate()
    """


def test_V43_an_edge_is_proposed_for_a_graph_that_was_built(backend: str, tmp_path: Path) -> None:
    (found,) = run(tmp_path / "built.py", BUILT)
    assert found.fix == "graph.add_edge(0, 1)"
    assert f"after {tmp_path / 'built.py'}:7" in str(found)
    assert "capture" not in str(found)
    assert not run(tmp_path / "mended.py", mended(BUILT, found))


LOOP = """
    import halstream as hs
    x, copies = hs.empty(64, "f4"), [hs.empty(64, "f4") for _ in range(2)]
    hs.synchronize()
    graph = hs.Graph()
    graph.add(lambda s: x.fill(1, s))
    for copy in copies:
        graph.add(lambda s: copy.copy_from(x, s))
    graph.instantiate()
    """


def test_V43_an_edge_behind_a_line_that_adds_several_nodes_is_given_in_words(backend: str, tmp_path: Path) -> None:
    found = run(tmp_path / "loop.py", LOOP).races[0]
    assert not found.fix
    assert "fix: let node 1 come after node 0: by add_edge(0, 1)" in str(found)


@pytest.mark.parametrize("waits", [False, True])
def test_V44_the_host_writes_a_condition_during_a_launch(waits: bool, backend: str) -> None:
    stream, condition = hs.Stream(non_blocking=True), hs.Condition(None)
    x = hs.empty(4, "f4")
    body, graph = hs.Graph(), hs.Graph()
    body.add(lambda s: x.fill(1, s))
    graph.add_if(condition, body)
    launches = graph.instantiate()
    hs.synchronize()
    with hs.sanitize(on="collect") as report:
        condition.value = 1
        launches.launch(stream)
        if waits:
            stream.synchronize()
        condition.value = 0
        hs.synchronize()
    assert len(report) == (not waits)
    for found in report:
        assert found.second.host and found.fix == "stream.synchronize()"


@pytest.mark.needs("host")
def test_V44_a_function_writes_the_condition_of_its_loop(backend: str) -> None:
    stream, condition = hs.Stream(), hs.Condition(3)
    body, graph = hs.Graph(), hs.Graph()

    def step() -> None:
        condition.value -= 1

    body.add(lambda s: s.call(step))
    graph.add_while(condition, body)
    with hs.sanitize(on="collect") as report:
        graph.instantiate().launch(stream)
        stream.synchronize()
    assert not report and condition.value == 0
