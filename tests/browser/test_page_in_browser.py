"""The page of findings in a headless Chromium: layout, keyboard, zoom, light and dark. `make test-browser` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, Browser
from halstream._checks import formats, results
from halstream._traces.sequence import Sequence

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; make test-browser installs it")


def timeline(file: str) -> Sequence:
    def step(at: int, name: str, row: int, mark: str = "", after: tuple[int, ...] = ()) -> Any:
        return {
            "name": name, "kind": name.split()[0], "small": not name.startswith("copy"), "row": row, "mark": mark,
            "after": list(after), "number": at, "place": {"file": file, "line": at + 1, "function": "step"},
        }  # fmt: skip

    steps = [
        step(0, "record event 1", 0),
        step(1, "copy, 8,192 bytes", 0, "first"),
        step(2, "wait event 1", 1, "", (0,)),
    ]
    steps += [step(3, "copy, 8,192 bytes", 1, "second"), *(step(at, "copy", at % 2) for at in range(9, 24))]
    rows: Any = [{"name": "stream 1 (loader)", "host": False}, {"name": "stream 2 (compute)", "host": False}]
    return {"rows": rows, "steps": steps, "missing": [1, 3], "order": "calls", "note": ""}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    program = folder / "program.py"
    program.write_text("".join(f"value_{n} = {'x' * 150!r}\n" for n in range(40)))
    found = []
    for n in range(30):
        title = f"a copy of 8192 bytes writes on stream 1; number {n}"
        one = results.failing_schedule(title, "text", None, f"test_it.py::test_{n}", "", timeline(str(program)))
        one["place"] = {"file": str(program), "line": 4, "function": "step", "text": "a copy"}
        found.append(one)
    formats.write([formats.Target("html", str(folder / "out.html"))], found, folder, print)
    return folder / "out.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.mark.parametrize("width", [1400, 380])
def test_the_page_fits_the_width_and_loads_nothing(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width)
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    assert browser.value("document.querySelectorAll('svg .op.first').length") >= 1
    side = browser.value("document.querySelector('nav').getBoundingClientRect().right")
    assert (browser.value("detail.getBoundingClientRect().left") >= side) == (width > 1000)
    methods = [event.get("method") for event in browser.events]
    assert "Runtime.exceptionThrown" not in methods
    sent = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event.get("method") == "Network.requestWillBeSent"
    ]
    assert all(url.startswith(("file:", "data:")) for url in sent)


def test_keys_step_and_zoom(browser: Browser, page: Path) -> None:
    browser.open(page, 1400)
    now = "document.querySelector('.bar .now').textContent"
    for _ in range(2):
        browser.press("ArrowRight")
    assert browser.value(now).startswith("Step 2 of 19: copy, 8,192 bytes on stream 1 (loader) (first")
    assert browser.value("document.querySelectorAll('.drawing .op.later').length") == 17
    assert "program.py:2" in browser.value("document.getElementById('step-source').textContent")
    browser.press("ArrowLeft")
    assert browser.value(now).startswith("Step 1 of 19")
    width = "document.querySelector('.scroll svg').getBoundingClientRect().width"
    before = browser.value(width)
    browser.press("+")
    assert browser.value(width) == pytest.approx(1.25 * before, rel=0.01)
    browser.press("0")
    assert browser.value(f"{width} <= document.querySelector('.scroll').clientWidth + 1")


def test_keys_and_the_search_choose_findings(browser: Browser, page: Path) -> None:
    browser.open(page, 1400)
    current = "document.querySelector('[aria-current=true]').dataset.index"
    browser.press("j")
    assert browser.value(current) == "1"
    browser.press("/")
    assert browser.value("document.activeElement.id") == "search"
    browser.call("Input.insertText", text="number 17")
    assert browser.value("document.getElementById('matches').textContent") == "1 of 30 findings"
    assert browser.value(current) == "17"


def test_light_and_dark(browser: Browser, page: Path) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    colours = []
    for dark in (False, True):
        browser.open(page, 1400, dark)
        colours.append(browser.value(back))
        browser.value("document.getElementById('theme').click()")
        colours.append(browser.value(back))
    assert colours[0] == colours[3] != colours[1] == colours[2]
