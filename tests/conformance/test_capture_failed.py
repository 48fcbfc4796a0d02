"""What is left of captures that fail: usable streams, and a graph that says why it was not made."""

from __future__ import annotations

from collections.abc import Callable

import halstream as hs
import pytest
from capture_help import usable

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def test_G4_an_exception_of_the_body_ends_the_capture() -> None:
    a, b = hs.Stream(), hs.Stream()
    with pytest.raises(ZeroDivisionError), hs.capture(a) as graph:
        b.wait(a)
        b.call(print)
        raise ZeroDivisionError
    for use in _uses(graph):
        with pytest.raises(hs.HalError, match=r"^the capture failed, so that there is no graph: ZeroDivisionError$"):
            use()
    usable(a, b)


def _uses(graph: hs.Graph) -> list[Callable[[], object]]:
    return [lambda: graph.nodes, lambda: graph.edges, graph.dot, graph.instantiate, graph.clone]


def test_G4_the_graph_of_a_capture_whose_body_raised_says_what() -> None:
    s = hs.Stream()
    with pytest.raises(LookupError), hs.capture(s) as graph:
        s.nop()
        raise LookupError("nothing there")
    for use in _uses(graph):
        with pytest.raises(hs.HalError, match=r"^the capture failed, so that .*: LookupError: nothing there$"):
            use()
    usable(s)


def test_G4_the_graph_of_a_capture_that_has_not_ended_says_so() -> None:
    with hs.capture(hs.Stream()) as graph:
        for use in _uses(graph):
            with pytest.raises(hs.HalError, match="has not ended"):
                use()
        with pytest.raises(hs.HalError, match="has not ended"):
            graph.close()
        assert repr(graph) == "<halstream.Graph, under capture>"
    assert repr(graph) == "<halstream.Graph of 0 nodes>"
    graph.close()


def test_G4_the_graph_of_a_capture_that_failed_can_be_closed() -> None:
    with pytest.raises(ZeroDivisionError), hs.capture(hs.Stream()) as graph:
        raise ZeroDivisionError
    assert repr(graph) == "<halstream.Graph, not captured>"
    graph.close()


@pytest.mark.parametrize("own", [False, True])
def test_G4_the_graph_of_a_capture_that_was_invalidated_gives_the_first_cause(own: bool) -> None:
    """It came before what the body raised, or the end."""
    s = hs.Stream()
    with pytest.raises(KeyError if own else hs.CaptureError), hs.capture(s) as graph:
        with pytest.raises(hs.CaptureError):
            s.query()
        if own:
            raise KeyError("later")
    for use in _uses(graph):
        with pytest.raises(
            hs.HalError, match=r'the capture failed.*invalidated at .*test_capture_failed.py:.*"query"'
        ) as caught:
            use()
        assert "later" not in str(caught.value)
    usable(s)


def test_G4_the_graph_of_a_capture_with_a_stream_that_was_not_joined_says_that() -> None:
    s, side = hs.Stream(), hs.Stream()
    with pytest.raises(hs.CaptureError), hs.capture(s) as graph:
        side.wait(s)
        side.nop()
    with pytest.raises(hs.HalError, match=r"the capture failed.*CaptureError: .*join"):
        graph.instantiate()
    with pytest.raises(ZeroDivisionError), hs.capture(s) as graph:
        side.wait(s)
        side.nop()
        raise ZeroDivisionError
    with pytest.raises(hs.HalError, match=r"the capture failed.*: ZeroDivisionError$"):
        graph.instantiate()
    usable(s, side)
