"""Memory that graphs allocate and free, and updates of single nodes of executables."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import halstream as hs
import numpy as np
import pytest
from endings import set_soon

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def result(stream: hs.Stream, array: hs.Array) -> int:
    """Return the one value of an array of bytes."""
    stream.synchronize(timeout=LIMIT)
    (value,) = set(array.numpy().tolist())
    return int(value)


def test_G12_a_launch_gives_memory_back_whose_array_was_collected() -> None:
    s = hs.Stream()
    with hs.capture(s) as graph:
        array = hs.empty(16, "u1", stream=s)
        array.fill(8, s)
    run = graph.instantiate()
    del array
    for _ in range(3):
        run.launch(s)
    s.synchronize(timeout=LIMIT)


def test_G12_memory_is_valid_between_its_nodes_in_each_launch() -> None:
    s, out = hs.Stream(), hs.zeros(300, "u1")
    hs.synchronize()
    with hs.capture(s) as graph:
        inner = hs.empty(300, "u1", stream=s)
        inner.fill(7, s)
        out.copy_from(inner, s)
        inner.free()
        with pytest.raises(hs.HalError):
            inner.fill(1, s)
    assert [node.kind for node in graph.nodes] == ["allocate", "fill", "copy", "free"]
    run = graph.instantiate()
    for _ in range(3):
        out.fill(0, s)
        run.launch(s)
        assert result(s, out) == 7


def test_G12_memory_that_no_node_frees_is_freed_before_the_next_launch() -> None:
    s = hs.Stream()
    with hs.capture(s) as graph:
        array = hs.empty(300, "u1", stream=s)
        array.fill(6, s)
    run = graph.instantiate()
    with pytest.raises(
        hs.InvalidValueError,
        match=r"node 0 \(allocate at .*test_graph_memory\.py:\d+\) of a graph allocates, and that no launch",
    ):
        array.fill(1, s)
    run.launch(s)
    assert result(s, array) == 6
    with pytest.raises(
        hs.InvalidValueError,
        match=r"node 0 \(allocate at .*test_graph_memory\.py:\d+\) allocates are allocated since an earlier launch",
    ):
        run.launch(s)
    s.synchronize(timeout=LIMIT)
    array.free(s)
    run.launch(s)
    s.synchronize(timeout=LIMIT)


def test_G12_memory_that_no_node_frees_is_freed_after_each_launch() -> None:
    s = hs.Stream()
    with hs.capture(s) as graph:
        array = hs.empty(300, "u1", stream=s)
        array.fill(6, s)
    run = graph.instantiate()
    for _ in range(3):
        run.launch(s)
        assert result(s, array) == 6
        with pytest.raises(hs.InvalidValueError, match="earlier launch"):
            run.launch(s)
        array.free(s)
        with pytest.raises(hs.InvalidValueError, match="freed since"):
            array.fill(1, s)
        with pytest.raises(hs.InvalidValueError, match="freed since"):
            array.free(s)
    with hs.capture(s) as other:
        array.free(s)
    assert [node.kind for node in other.nodes] == ["free"]
    free = other.instantiate()
    for _ in range(2):
        run.launch(s)
        assert result(s, array) == 6
        free.launch(s)
    free.close()
    other.close()
    run.launch(s)
    array.free(s)
    s.synchronize(timeout=LIMIT)


def test_G12_auto_free_and_a_collected_owner_let_launches_follow_each_other() -> None:
    s, out = hs.Stream(), hs.zeros(300, "u1")
    hs.synchronize()
    with hs.capture(s) as graph:
        array = hs.empty(300, "u1", stream=s)
        array.fill(5, s)
        out.copy_from(array, s)
    run = graph.instantiate(auto_free=True)
    for _ in range(3):
        run.launch(s)
    assert result(s, out) == 5
    run.close()
    run = graph.instantiate()
    del array
    gc.collect()
    hs.Graph()  # ends what was collected
    for _ in range(3):
        run.launch(s)
    assert result(s, out) == 5


def test_G12_a_graph_with_memory_has_one_executable_and_no_clone() -> None:
    s = hs.Stream()
    with hs.capture(s) as graph:
        hs.empty(300, "u1", stream=s).free()
    run = graph.instantiate()
    with pytest.raises(hs.NotSupportedError, match="has an executable already"):
        graph.instantiate()
    with pytest.raises(hs.NotSupportedError, match="cannot be cloned"):
        graph.clone()
    with pytest.raises(hs.NotSupportedError):
        hs.Graph().add_graph(graph)
    with pytest.raises(hs.CaptureError) as caught:
        run.update(hs.Graph())
    assert caught.value.code == 910
    with pytest.raises(hs.CaptureError, match="launch it by itself"), hs.capture(s):
        run.launch(s)
    run.close()
    graph.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)


def test_G12_other_memory_is_not_freed_by_a_node() -> None:
    s = hs.Stream()
    array = hs.empty(16, "u1", stream=s)
    with pytest.raises(hs.CaptureError, match="only memory that a graph has allocated") as caught, hs.capture(s):
        array.free(s)
    assert caught.value.code in (900, 901)
    with pytest.raises(hs.InvalidValueError, match="in the order of a stream"):
        hs.empty(16, "u1").free(s)
    array.fill(1, s)
    s.synchronize(timeout=LIMIT)


def test_G11_a_node_is_updated_for_later_launches_and_releases_what_it_had(hold: Hold) -> None:
    class Argument:
        pass

    s, ran, argument = hs.Stream(), [], Argument()
    gone = threading.Event()
    weakref.finalize(argument, gone.set)
    array = hs.zeros(300, "u1")
    hs.synchronize()
    with hs.capture(s) as graph:
        s.call(ran.append, 1)
        array.fill(1, s)
    run = graph.instantiate()
    run.update_node(0, lambda t, kept=argument: t.call(lambda value: ran.append(2), kept))
    del argument
    gate = hold(s)
    run.launch(s)
    run.update_node(0, lambda t: t.call(ran.append, 3))
    run.update_node(1, lambda t: array.fill(9, t))
    gate.open()
    assert result(s, array) == 1
    hs.Graph()  # ends what was released
    gc.collect()
    assert set_soon(gone, LIMIT), "a node that was replaced twice keeps its argument"
    run.launch(s)
    assert result(s, array) == 9
    assert ran == [2, 3]


@pytest.mark.parametrize(
    ("index", "enqueue", "error", "text"),
    [
        (
            0,
            lambda t: t.nop(),
            hs.CaptureError,
            r"node 0 \(call at .*test_graph_memory.py:\d+\) cannot become a node of kind empty",
        ),
        (0, lambda t: None, hs.InvalidValueError, "made 0 nodes"),
        (0, lambda t: (t.nop(), t.nop()), hs.InvalidValueError, "made 2 nodes"),
        (5, lambda t: t.nop(), hs.InvalidValueError, "no node 5"),
        (0, lambda t: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_G11_an_update_of_a_node_that_cannot_be_changes_nothing(
    index: int, enqueue: Any, error: type[Exception], text: str
) -> None:
    s, ran = hs.Stream(), []
    with hs.capture(s) as graph:
        s.call(ran.append, 1)
    run = graph.instantiate()
    with pytest.raises(error, match=text):
        run.update_node(index, enqueue)
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == [1]


def test_G11_an_upload_runs_nothing() -> None:
    s, ran = hs.Stream(), []
    with hs.capture(s) as graph:
        s.call(ran.append, 1)
    run = graph.instantiate()
    run.upload(s)
    s.synchronize(timeout=LIMIT)
    assert ran == []
    with pytest.raises(TypeError):
        run.upload(None)  # type: ignore[arg-type]
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == [1]
    run.close()
    with pytest.raises(hs.ClosedError):
        run.upload(s)


@pytest.mark.parametrize(
    "check",
    [
        lambda: hs.sanitize(on="collect"),
        pytest.param(lambda: hs.testing.schedule("fifo"), marks=pytest.mark.needs("schedules")),
    ],
    ids=["sanitizer", "schedule"],
)
def test_G12_memory_of_a_graph_is_returned_where_the_program_is_checked(check: Callable[[], Any]) -> None:
    with check():
        s = hs.Stream()
        with hs.capture(s) as graph:
            x = hs.empty(64, "u1", stream=s)
            x.fill(3, s)
            x.free()
        run = graph.instantiate()
        for _ in range(3):
            run.launch(s)
        s.synchronize()
        run.close()
        graph.close()
        known = weakref.ref(x)
        del x
        gc.collect()
        assert known() is None
        for _ in range(100):  # what is released on the way is released during such calls
            s.call(int)
            s.synchronize()


def test_G11_names_of_functions_are_in_the_text() -> None:
    s, body = hs.Stream(), hs.Graph()
    with hs.capture(s) as graph:
        s.call(np.add, 1, 2)
    body.add(lambda t: t.call(hs.device_count))
    graph.add_graph(body)
    assert [node.name for node in graph.nodes] == ["add", ""]
    text = graph.dot()
    assert 'n0 [label="call add at ' in text
    assert "subgraph cluster_n1" in text
    assert 'n1_0 [label="call device_count' in text
    assert "n1 -> n1_0 [style=dashed];" in text


def test_G11_a_picture_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(hs.NotSupportedError, match="install graphviz"):
        hs.Graph().svg()


@pytest.mark.skipif(
    shutil.which("dot") is None and os.environ.get("HAL_REQUIRE") != "dot", reason="needs dot, the program of graphviz"
)
def test_G11_a_picture_shows_nodes_and_edges() -> None:
    s = hs.Stream()
    with hs.capture(s) as graph:
        s.call(np.add, 1, 2)
        s.nop()
    picture = ElementTree.fromstring(graph.svg())
    titles = [found.text for found in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert {"n0", "n1", "n0->n1"} <= set(titles)
    words = " ".join(found.text or "" for found in picture.iter("{http://www.w3.org/2000/svg}text"))
    assert "call add" in words
    assert "test_graph_memory.py" in words


class Owner:
    """Holds a graph of one of its methods."""

    def __init__(self, weak: bool) -> None:
        self.stream, self.runs = hs.Stream(), 0
        method = weakref.WeakMethod(self.step)
        with hs.capture(self.stream) as self.graph:
            self.stream.call((lambda: method()()) if weak else self.step)
        self.run = self.graph.instantiate()

    def step(self) -> None:
        self.runs += 1


@pytest.mark.parametrize("remedy", ["weak", "close"])
def test_G6_an_owner_of_the_graph_of_its_own_method_goes_where_that_is_weak_or_closed(remedy: str) -> None:
    owner = Owner(remedy == "weak")
    owner.run.launch(owner.stream)
    owner.stream.synchronize()
    assert owner.runs == 1
    found = weakref.ref(owner)
    if remedy == "close":
        owner.run.close()
        owner.graph.close()
    del owner
    deadline = time.monotonic() + LIMIT
    while found() is not None:  # the thread that has run the function lets go of it
        assert time.monotonic() < deadline
        gc.collect()
