"""The page of findings: its parts, what is drawn, and that no text of a program becomes markup."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from halstream._checks import formats, nearby, results
from plugin_help import Runner
from sanitize_help import PROGRAM
from sanitize_help import run as run_program

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

WAITS = """
import halstream as hs
a, side = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
x = hs.empty(4)
done = a.record()
x.fill(1, a)
side.wait(done)
x.fill(2, side)
a.synchronize()
side.synchronize()
"""
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&amp;$data"


STEP = ("name", "kind", "small", "row", "place", "mark", "after", "number")


class Page(HTMLParser):
    """The elements of a page, and the data in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)
        self.close()
        self.data: Any = json.loads(self.text["data"][0])
        for one in self.data["results"]:
            if one["timeline"] is not None:
                steps = one["timeline"]["steps"]
                one["timeline"]["steps"] = [dict(zip(STEP, step, strict=True)) for step in steps]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = str(dict(attrs).get("id") or tag)

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self._open, []).append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def page_of(found: list[results.Result], tmp_path: Path) -> Page:
    file = tmp_path / "out.html"
    formats.write([formats.target(f"html:{file}")], found, tmp_path, print)
    return Page(file.read_text(encoding="utf-8"))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let findings be gathered with the operations around them."""
    monkeypatch.setattr(nearby._gathered, "wanted", True)


def found(file: Path, program: str) -> list[results.Result]:
    return [results.of_finding(finding) for finding in run_program(file, program).all]


@pytest.mark.usefixtures("drawn")
def test_V40_the_operations_around_a_finding_are_drawn_with_their_order(tmp_path: Path) -> None:
    (one,) = page_of(found(tmp_path / "program.py", WAITS), tmp_path).data["results"]
    steps = one["timeline"]["steps"]
    by_mark = {step["mark"]: at for at, step in enumerate(steps) if step["mark"]}
    assert one["timeline"]["missing"] == [by_mark["first"], by_mark["second"]]
    (waits,) = [step for step in steps if step["kind"] == "wait"]
    assert [steps[at]["kind"] for at in waits["after"]] == ["record"]
    rows = [row["name"] for row in one["timeline"]["rows"]]
    assert [name.partition(" (")[2] for name in rows if "(" in name] == ["a)", "side)"]
    assert steps[by_mark["second"]]["place"][1] == 8
    assert [step["number"] for step in steps] == sorted(step["number"] for step in steps)


def test_the_operations_around_a_finding_are_gathered_only_for_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearby._gathered, "wanted", False)
    (one,) = found(tmp_path / "program.py", PROGRAM)
    assert one["timeline"] is None
    formats.target("json")
    assert not nearby.wanted()
    formats.target("html")
    assert nearby.wanted()


@pytest.mark.usefixtures("drawn")
def test_V41_the_page_loads_nothing_and_has_source_fix_and_count(tmp_path: Path) -> None:
    page = page_of(found(tmp_path / "program.py", PROGRAM), tmp_path)
    addresses = [attrs.get(name) for _, attrs in page.elements for name in ("src", "href") if name in attrs]
    assert addresses == ["data:,", "#detail"]
    assert any("default-src 'none'" in str(attrs.get("content")) for _, attrs in page.elements)
    assert page.count("script") == 2 and page.count("main") == page.count("nav") == 1
    (one,) = page.data["results"]
    assert page.data["lines"][one["places"][0][0]]["7"] == "    x.fill(2, b)"
    assert one["fix"]["proven"] and "+    b.wait(a.record())" in one["diff"].splitlines()
    assert f"seen {one['count']} times" in "".join(page.text["span"])
    assert [button["data-index"] for tag, button in page.elements if "data-index" in button] == ["0"]


def test_V40_no_text_of_a_program_becomes_markup(tmp_path: Path) -> None:
    (one,) = found(tmp_path / "program.py", PROGRAM.replace("x.fill(2, b)", f"x.fill(2, b)  # {HOSTILE}"))
    plain = page_of([one], tmp_path)
    assert one["place"] is not None
    one["place"]["function"] = one["title"] = one["text"] = one["test"] = HOSTILE
    page = page_of([one], tmp_path)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert page.data["results"][0]["title"] == HOSTILE
    assert page.data["lines"][0]["7"].endswith(HOSTILE)


@pytest.mark.usefixtures("drawn")
def test_rows_of_other_streams_have_the_names_that_stood_for_them(tmp_path: Path) -> None:
    program = """
import halstream as hs
class Loader:
    def __init__(self):
        self._streams = [hs.Stream(non_blocking=True)]
    def load(self, y):
        y.fill(1, self._streams[0])
a, b, third = [hs.Stream(non_blocking=True) for _ in range(3)]
loader, x, y = Loader(), hs.empty(4), hs.empty(4)
x.fill(1, a)
loader.load(y)
hs.empty(4).fill(1, third)
x.fill(2, b)
"""
    (one,) = page_of(found(tmp_path / "program.py", program), tmp_path).data["results"]
    named = {row["name"].partition(" (")[2] for row in one["timeline"]["rows"]}
    assert named == {"a)", "b)", "third)", "self._streams[0])"}, one["timeline"]["rows"]


@pytest.mark.usefixtures("drawn")
def test_a_page_of_many_findings_has_a_bearable_size(tmp_path: Path) -> None:
    (one,) = found(tmp_path / "program.py", PROGRAM)
    sizes = []
    for n in (500, 1000, 1500):
        page_of([one] * n, tmp_path)
        sizes.append((tmp_path / "out.html").stat().st_size)
    assert sizes[2] - sizes[1] <= 1.01 * (sizes[1] - sizes[0]), "as much for each further finding"
    assert sizes[2] < 6_500_000
    assert page_of([], tmp_path).data["results"] == []


def test_a_failing_schedule_can_be_stepped_through(pytester: pytest.Pytester) -> None:
    Runner(pytester)("def test_race(): race()", "--stream-schedules=10", "--stream-report=html:out.html")
    (one,) = Page((pytester.path / "out.html").read_text(encoding="utf-8")).data["results"]
    drawn = one["timeline"]
    assert one["token"] and drawn["order"] == "run"
    marks = [step["mark"] for step in drawn["steps"] if step["mark"]]
    assert "held" in marks
    assert all(end < at for at, step in enumerate(drawn["steps"]) for end in step["after"])


def test_findings_of_the_plugin_have_timelines(pytester: pytest.Pytester) -> None:
    test = """
    def test_unordered():
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
        x.fill(1, one)
        x.fill(2, two)
    """
    Runner(pytester)(test, "--stream-sanitize", "--stream-report=html:out.html")
    (one,) = Page((pytester.path / "out.html").read_text(encoding="utf-8")).data["results"]
    assert [step["mark"] for step in one["timeline"]["steps"]] == ["first", "second"]
