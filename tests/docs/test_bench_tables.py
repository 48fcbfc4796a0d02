"""The tables of the benchmarks are made of what the processes measured."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Tables = Callable[[dict[str, Any]], str]


@pytest.fixture(autouse=True)
def root_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests import the benchmarks, which lie beside the package."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))


@pytest.fixture
def tables() -> Tables:
    """The function that makes the tables."""
    made: Tables = importlib.import_module("benchmarks.report").tables
    return made


@pytest.fixture
def rows() -> Any:
    """The module of the rows."""
    return importlib.import_module("benchmarks.rows")


def results(own: dict[str, float], woken: dict[str, float], peers: dict[str, dict[str, float]]) -> dict[str, Any]:
    """What a run gives, with one process of each."""

    def sheet(rows: dict[str, float], after_pause: dict[str, float]) -> dict[str, Any]:
        kinds = {"rows": rows, "woken": after_pause}
        return {kind: {row: {"": value} for row, value in found.items()} for kind, found in kinds.items()}

    floor = peers.pop("floor", {})
    names = ("halstream", "intel", "pocl", "iree", "asyncio_loop", "thread_queue", "floor")
    sheets = {name: [sheet(rows, {})] for name, rows in peers.items()}
    sheets |= {"halstream": [sheet(own, woken)], "floor": [sheet({}, floor)]}
    return {"titles": {name: name for name in names}, "sheets": sheets, "once": {}}


def line(text: str, title: str) -> list[str]:
    """The cells of a row of the first table."""
    found = [one for one in text.partition("The peers:")[0].splitlines() if one.startswith(f"| {title} ")]
    assert len(found) == 1, title
    return [cell.strip() for cell in found[0].strip("|").split("|")]


def title_of(rows: Any, name: str) -> str:
    """The title of a row."""
    title: str = next(row.title for row in rows.ROWS if row.name == name)
    return title


def test_a_peer_that_knows_no_difference_takes_part_with_the_figure_it_has(tables: Tables, rows: Any) -> None:
    text = tables(
        results({"record_new": 0.5}, {}, {"intel": {"record": 1.0}, "iree": {"record": 4.0, "record_new": 2.0}})
    )
    cells = line(text, title_of(rows, "record_new"))
    assert cells[3:6] == ["0.5", "0.5 (intel)", "yes"]


def test_halstream_does_not_take_part_with_the_figure_of_another_row(tables: Tables) -> None:
    text = tables(results({"stream1_rate": 5e6}, {}, {"thread_queue": {"stream1_rate": 2e6}}))
    row = next(one for one in text.splitlines() if "submitted in batches" in one)
    assert row.split("|")[4].strip() == ""


def test_figures_after_a_pause_are_divided_by_the_floor(tables: Tables, rows: Any) -> None:
    text = tables(results({}, {"round_trip": 30.0, "handoff": 50.0}, {"floor": {"round_trip": 20.0, "handoff": 10.0}}))
    assert line(text, title_of(rows, "round_trip_floor"))[3:6] == ["1.5", "", "yes"]
    assert line(text, title_of(rows, "handoff_floor"))[3] == "5"


def test_limits_name_the_peer_and_the_side(rows: Any) -> None:
    assert rows.Row("x", "x", "per second", 400_000, 1 / 0.6, ("thread_queue",), more=True).limits == (
        "≥ 400 k, ≥ 0.6 times thread + queue"
    )
    assert rows.Row("x", "x", share=0.5, against=("asyncio_loop",)).limits == "≤ 1/2 of asyncio"
    assert rows.Row("x", "x", share=1.0).limits == "≤ 1 times the best"


def test_names_are_unique_and_figures_of_other_rows_exist(rows: Any) -> None:
    names = [row.name for row in rows.ROWS]
    assert len(names) == len(set(names))
    assert {row.of for row in rows.ROWS} - {""} <= set(names)
