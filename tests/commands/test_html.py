"""What notebooks show: well-formed markup, in which no text of the program is markup."""

from __future__ import annotations

import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream._notebook import graph as drawing
from halstream._notebook import timeline as picture
from halstream._notebook.markup import Markup, element
from halstream._traces.timeline import Slice, Timeline
from halstream.testing import Gate, record

LIMIT = 10.0
EVIL = "<script>alert('x')</script>\" onload=\"alert(1) & \x00\x1b"

pytestmark = pytest.mark.usefixtures("backend")


def parsed(markup: str) -> ET.Element:
    """Return the root of markup that is well-formed XML, without a script or a handler in it."""
    root = ET.fromstring(f"<root>{markup}</root>")
    for node in root.iter():
        assert node.tag.rpartition("}")[2] not in ("script", "img", "iframe"), node.tag
        assert not any(name.startswith("on") for name in node.attrib), node.attrib
    return root


def texts(markup: str) -> list[str]:
    return [text.strip() for text in parsed(markup).itertext() if text.strip()]


def test_texts_and_attributes_are_escaped() -> None:
    root = parsed(element("p", EVIL, Markup("<b>bold</b>"), title=EVIL, stroke_width="2"))
    assert root[0].text == EVIL.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")
    assert root[0].attrib["title"] == root[0].text
    assert root[0].attrib["stroke-width"] == "2"
    assert root[0][0].text == "bold"


def test_a_stream_shows_its_state_and_place(hold: Callable[[Any], Any]) -> None:
    s = hs.Stream(priority=-1)
    shown = texts(s._repr_html_())
    assert shown[:3] == ["halstream.Stream", "state", "idle"]
    assert f"{hs.backend()}:0" in shown
    gate = hold(s)
    assert "idle" not in texts(s._repr_html_())
    gate.open()
    s.synchronize(timeout=LIMIT)
    s.close()
    assert "closed" in texts(s._repr_html_())


def test_an_event_shows_its_state(hold: Callable[[Any], Any]) -> None:
    s, e = hs.Stream(), hs.Event(timing=True)
    assert {"never recorded", "yes"} <= set(texts(e._repr_html_()))
    gate = hold(s)
    e.record(s)
    assert not {"never recorded", "done"} & set(texts(e._repr_html_()))
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert "done" in texts(e._repr_html_())
    e.close()
    assert "closed" in texts(e._repr_html_())


def test_objects_of_dialects_show_their_own_class() -> None:
    from halstream.cupy import cuda as cupy_cuda
    from halstream.torch import cuda

    for one in (cuda.Stream(), cuda.Event(), cupy_cuda.Stream(), cupy_cuda.Event()):
        assert type(one).__name__ in texts(one._repr_html_())[0]


def test_a_look_leaves_the_error_of_a_stream() -> None:
    s = hs.Stream()
    e = threading.Event()
    s.call_checked(lambda: 1 / 0)
    s.call(e.set)
    assert e.wait(LIMIT)
    s._repr_html_()
    with pytest.raises(ZeroDivisionError):
        s.synchronize(timeout=LIMIT)


def test_a_graph_is_drawn_with_all_nodes_and_edges() -> None:
    def named() -> None:
        pass

    named.__name__ = EVIL
    s, other = hs.Stream(), hs.Stream()
    with hs.capture(s) as graph:
        s.call(named)
        other.wait(s.record())
        other.call(named)
        s.call(named)
        s.wait(other.record())
        s.call(named)
    root = parsed(graph._repr_html_())
    boxes = [node for node in root.iter() if node.tag.endswith("}rect")]
    lines = [node for node in root.iter() if node.tag.endswith("}path") and node.attrib["fill"] == "none"]
    assert (len(boxes), len(lines)) == (len(graph.nodes), len(graph.edges))
    rows = [float(box.attrib["y"]) for box in boxes]
    assert all(rows[a] < rows[b] for a, b in graph.edges)


def test_a_large_graph_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_MOST", 1)
    s = hs.Stream()
    with hs.capture(s) as graph:
        s.call(int)
        s.call(int)
    assert texts(graph._repr_html_()) == ["a graph of 2 nodes and 1 edges, too many for a picture: see dot()"]


def test_a_report_shows_its_findings() -> None:
    a, b, x = hs.Stream(), hs.Stream(), hs.empty(8, "u1")
    with hs.sanitize(on="collect") as report:
        x.fill(1, a)
        x.fill(2, b)
        for s in (a, b):
            s.synchronize(timeout=LIMIT)
    shown = texts(report._repr_html_())
    assert shown[0] == "halstream: 1 unordered access"
    assert "why" in shown
    assert any(Path(__file__).name in text for text in shown)
    finding = report.races[0]
    parsed(finding._repr_html_())
    evil = finding._replace(buffer=EVIL, second=finding.second._replace(name=EVIL))
    parsed(evil._repr_html_())


def bars(markup: str) -> list[ET.Element]:
    return [node for node in parsed(markup).iter() if node.tag.endswith("}rect")]


@pytest.mark.needs("graphs")
def test_what_is_shown_in_a_capture_does_not_invalidate_it() -> None:
    s = hs.Stream()
    with hs.capture(s) as graph, record():
        e = s.record()
        assert "recorded in a capture" in texts(e._repr_html_())
        assert "capturing" in texts(s._repr_html_())
        s.nop()
    assert len(graph.nodes) == 1
    assert "recorded in a capture" in texts(e._repr_html_())


@pytest.mark.needs("times")
def test_a_recorded_timeline_has_a_row_for_each_stream_and_a_line_for_each_wait() -> None:
    a, b = hs.Stream(), hs.Stream()
    with record() as recorded:
        gate = Gate(a)
        a.call(int)
        event = a.record()
        b.wait(event)
        b.call(int)
        gate.open()
        b.synchronize(timeout=LIMIT)
    root = parsed(recorded._repr_html_())
    names = {node.text for node in root.iter() if node.tag.endswith("}title")}
    assert {f"device 0 / stream {s.index}" for s in (a, b)} <= names
    lines = [node for node in root.iter() if node.tag.endswith("}path")]
    assert len(lines) == 1
    kinds = {str(name).partition("\n")[0].split()[0] for name in names}
    assert {"gate", "call", "record", "wait", "blocked:"} <= kinds


def test_the_picture_goes_into_a_file(tmp_path: Path) -> None:
    with record() as recorded:
        with pytest.raises(RuntimeError, match="not ended"):
            recorded.svg()
        hs.Stream().nop()
    recorded.save(tmp_path / "a.svg")
    recorded.save(tmp_path / "a.html")
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("}svg")
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(RuntimeError, match="another one"), recorded:
        pass


def made(*slices: tuple[str, int, int | None]) -> Timeline:
    timeline = Timeline()
    track = timeline.track(EVIL, EVIL)
    for number, (name, begin, end) in enumerate(slices):
        timeline.slices.append(Slice(track, "stream", name, begin, end, number))
    return timeline


def test_names_in_a_timeline_are_texts() -> None:
    parsed(picture.svg(made((EVIL, 0, 1000), (EVIL, 1000, None))))


def test_bars_have_their_place_on_the_axis() -> None:
    first, second, third = bars(picture.svg(made(("a", 0, 500), ("b", 500, 1000), ("c", 900, None)), width=182 + 1000))
    assert [float(first.attrib[key]) for key in ("x", "width")] == [170, 500]
    assert [float(second.attrib[key]) for key in ("x", "width")] == [670, 500]
    assert [float(third.attrib[key]) for key in ("x", "width")] == [1070, 100]
    assert "stroke-dasharray" in third.attrib
    assert "stroke-dasharray" not in first.attrib


def test_of_very_many_bars_the_first_are_drawn_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "_MOST", 2)
    shown = picture.svg(made(*[("a", n, n + 1) for n in range(5)]))
    assert len(bars(shown)) == 2
    assert "3 later operations are not shown" in texts(shown)


@pytest.mark.parametrize("times", [(0, 0), (5, 5), (0, 1), (0, 3), (0, 10**12), (10**18, 10**18 + 7)])
def test_any_span_has_an_axis_of_few_marks(times: tuple[int, int]) -> None:
    root = parsed(picture.svg(made(("a", *times))))
    marks = [node for node in root.iter() if node.tag.endswith("}line") and node.attrib.get("opacity") == ".15"]
    assert 1 <= len(marks) <= 10


def test_an_empty_timeline_is_a_sentence() -> None:
    assert texts(picture.svg(Timeline())) == ["nothing was enqueued"]


def test_nothing_of_it_is_imported_before_it_is_asked_for() -> None:
    late = ("halstream._notebook", "halstream._lint", "asyncio", "typer")
    code = f"import sys, halstream; print([n for n in sys.modules if n.startswith({late})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
