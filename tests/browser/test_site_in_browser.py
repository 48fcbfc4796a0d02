"""The site of the documentation in a headless Chromium. `make test-browser` builds it and runs this."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import CHROMIUM, Browser

SITE = Path(__file__).resolve().parents[2] / "build" / "site"
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if path.name != "404.html")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; make test-browser installs it"),
    pytest.mark.skipif(not PAGES, reason="there is no site; make docs builds it"),
]
PHONE, DESKTOP = 390, 1280
#: What is wider than the page and cannot be scrolled within itself.
WIDER = """(() => {
  const inside = (e) => {
    for (let box = e.parentElement; box && box !== document.body; box = box.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(box).overflowX)) return true;
    return false;
  };
  const shown = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().width);
  const wide = shown.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !inside(e));
  return wide.map((e) => `${e.tagName}: ${e.textContent.slice(0, 60)}`).slice(0, 5);
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def test_the_site_has_its_pages() -> None:
    assert {"index.html", "tutorial.html", "gallery.html", "reference/core.html", "contract.html"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(browser: Browser, name: str) -> None:
    browser.open(SITE / name, PHONE)
    assert browser.value(WIDER) == []
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["index.html", "contract.html", "reference/torch.html"])
def test_a_page_fits_a_desktop_and_loads_nothing_from_elsewhere(browser: Browser, name: str) -> None:
    browser.open(SITE / name, DESKTOP)
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    sent = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    assert sent and all(url.startswith(("file:", "data:", "blob:")) for url in sent)


def test_light_and_dark_follow_the_system(browser: Browser) -> None:
    colours = []
    for dark in (False, True):
        browser.open(SITE / "index.html", DESKTOP, dark)
        colours.append(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]


def test_pictures_are_there(browser: Browser) -> None:
    browser.open(SITE / "gallery.html", DESKTOP)
    widths = browser.value("[...document.querySelectorAll('main img')].map((i) => i.naturalWidth)")
    assert len(widths) >= 3 and min(widths) > 0
