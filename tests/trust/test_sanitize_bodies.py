"""V43, V44: the bodies of nodes with a condition, as the sanitizer compares them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitize_help import mended, run

pytestmark = [pytest.mark.needs("graphs"), pytest.mark.needs("host")]

BODY = """
    import halstream as hs
    x, y, more = hs.empty(64, "f4"), hs.empty(64, "f4"), hs.Condition(0)
    hs.synchronize()
    body = hs.Graph()
    one = body.add(lambda stream: x.fill(1, stream))
    body.add(lambda stream: y.copy_from(x, stream){edge})
    body.add(lambda stream: more.set(0, stream), after=[0, 1])
    graph = hs.Graph()
    graph.{add}
    run = graph.instantiate()
    run.launch(hs.Stream())
    hs.synchronize()
    """


@pytest.mark.parametrize(
    "add",
    [
        "add_if(hs.Condition(1), body)",
        "add_if(hs.Condition(1), hs.Graph(), otherwise=body)",
        "add_while(more, body)",
        "add_switch(hs.Condition(7), [hs.Graph(), body])",
    ],
)
def test_V43_two_nodes_of_a_body_without_an_edge_are_reported_once(add: str, backend: str, tmp_path: Path) -> None:
    (found,) = run(tmp_path / "body.py", BODY.format(add=add, edge=""))
    assert found.why == "no path in the graph"
    assert [one.frames[0].line for one in (found.first, found.second)] == [6, 7]
    kind = add[4:].partition("(")[0]
    (inside,) = found.first.node.inside
    assert (inside.number, inside.kind) == (0, kind)
    assert f"in body {inside.body} of node 0 (a{'n' if kind == 'if' else ''} {kind})" in str(found)
    assert found.fix == "body.add_edge(0, 1)"
    assert not run(tmp_path / "mended.py", mended(BODY.format(add=add, edge=""), found))
    assert not run(tmp_path / "after.py", BODY.format(add=add, edge=", after=[one]"))


BESIDE = """
    import halstream as hs
    x, y = hs.empty(64, "f4"), hs.empty(64, "f4")
    hs.synchronize()
    body, inner, graph = hs.Graph(), hs.Graph(), hs.Graph()
    inner.add(lambda stream: x.fill(1, stream))
    body.add_switch(hs.Condition(0), [inner])
    graph.add(lambda stream: stream.call(print))
    node = graph.add_if(hs.Condition(1), body)
    graph.add(lambda stream: y.copy_from(x, stream){edge})
    graph.instantiate()
    """


def test_V43_a_node_of_a_nested_body_and_one_outside_are_reported_with_the_edge_that_helps(
    backend: str, tmp_path: Path
) -> None:
    (found,) = run(tmp_path / "beside.py", BESIDE.format(edge=""))
    assert [(one.number, one.kind, one.body) for one in found.first.node.inside] == [(1, "if", 0), (0, "switch", 0)]
    assert found.second.node.inside == ()
    assert found.fix == "graph.add_edge(1, 2)"
    assert "in body 0 of node 0 (a switch) in body 0 of node 1 (an if)" in str(found)
    assert not run(tmp_path / "mended.py", mended(BESIDE.format(edge=""), found))
    assert not run(tmp_path / "after.py", BESIDE.format(edge=", after=[node]"))


CONDITION = """
    import halstream as hs
    left = hs.Condition(None)
    body, graph = hs.Graph(), hs.Graph()
    body.add(lambda stream: left.set(0, stream))
    first = graph.add(lambda stream: left.set(3, stream))
    graph.{add}
    graph.instantiate()
    """


@pytest.mark.parametrize("kind", ["if", "while"])
def test_V43_a_node_that_sets_the_condition_beside_its_node_is_reported(
    kind: str, backend: str, tmp_path: Path
) -> None:
    found = run(tmp_path / "set.py", CONDITION.format(add=f"add_{kind}(left, body)"))
    assert [(one.first.node.kind, one.second.node.kind) for one in found] == [("fill", kind), ("fill", "fill")]
    assert not run(tmp_path / "mended.py", CONDITION.format(add=f"add_{kind}(left, body, after=[first])"))


SWITCH = """
    import halstream as hs
    x, y = hs.empty(64, "f4"), hs.empty(64, "f4")
    main, side = hs.Stream(), hs.Stream()
    hs.synchronize()
    cases = [hs.Graph(), hs.Graph()]
    cases[1].add(lambda stream: x.fill(1, stream))
    graph = hs.Graph()
    graph.add_switch(hs.Condition({choice}), cases)
    run = graph.instantiate()
    run.launch(main)
    {between}
    y.copy_from(x, side)
    hs.synchronize()
    """


@pytest.mark.parametrize("choice", [0, 1, 7])
def test_V44_all_bodies_count_with_their_nodes_whichever_runs(choice: int, backend: str, tmp_path: Path) -> None:
    (found,) = run(tmp_path / "switch.py", SWITCH.format(between="pass", choice=choice))
    assert (found.first.node.kind, found.first.node.frames[0].line) == ("fill", 7)
    assert found.first.node.inside[0][1:] == ("switch", 1)
    assert "in body 1 of node 0 (a switch) of the launch writes" in str(found)
    assert not run(tmp_path / "ordered.py", SWITCH.format(between="side.wait(main)", choice=choice))
