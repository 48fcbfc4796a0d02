"""The table of the benchmarks is made of what the processes measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def root_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests import the benchmarks, which lie beside the package."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))


def line(title: str, **figures: dict[str, dict[str, float]]) -> list[str]:
    """Return the cells of a row of the table that one process of each peer gives."""
    sheets = {name: [{"rows": rows, "errors": {}}] for name, rows in figures.items()}
    results: dict[str, Any] = {"titles": {name: name for name in figures}, "sheets": sheets}
    text: str = importlib.import_module("benchmarks.report").table(results)
    found = [one for one in text.splitlines() if one.startswith(f"| {title} ")]
    assert len(found) == 1, text
    return [cell.strip() for cell in found[0].strip("|").split("|")]


def test_the_best_peer_is_compared_and_of_its_ways_the_fastest() -> None:
    cells = line(
        "`record_event()` with a new event",
        halstream={"record": {"": 0.4}},
        intel={"record": {"busy": 3.0, "idle": 0.8}},
        iree={"record": {"fence": 2.0}},
    )
    assert cells[3:] == ["0.4 (0.4 to 0.4)", "0.8 (intel)", "0.5", "yes"]


def test_of_a_rate_more_is_better() -> None:
    cells = line(
        "Python functions",
        halstream={"functions": {"": 500_000.0}},
        asyncio_loop={"functions": {"": 1_000_000.0}},
        thread_queue={"functions": {"": 250_000.0}},
    )
    assert cells[3:] == ["500,000 (500,000 to 500,000)", "1,000,000 (asyncio_loop)", "2", "yes"]


def test_a_bound_that_is_missed_is_shown() -> None:
    assert line("import", halstream={"import": {"": 26.0}})[-1] == "no"


def test_figures_with_the_same_title_share_a_line() -> None:
    own, numpy = {"copy_4m": {"": 1.2}, "copy_64m": {"": 5.0}}, {"copy_4m": {"": 1.0}, "copy_64m": {"": 5.0}}
    cells = line("copy of 4; 64 MB, and synchronize", halstream=own, numpy=numpy)
    assert cells[3:] == ["1.2 (1.2 to 1.2); 5 (5 to 5)", "1 (numpy); 5 (numpy)", "1.2; 1", "no; yes"]
