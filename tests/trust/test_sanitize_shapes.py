"""Programs by shape, one sanitized run each: those with a link missing are reported, their twins are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import halstream as hs
import pytest
from corpus.shapes import SHAPES, Shape
from halstream._core import _current
from halstream._schedules.block import schedule
from shape_help import found_strictly, silenced

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]


@pytest.fixture(autouse=True)
def leave_contexts() -> Iterator[None]:
    yield
    _current.reset()


def test_there_are_sixty_programs_of_every_dialect() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) >= 60
    assert {shape.dialect for shape in SHAPES} == {"core", "torch", "paddle", "mindspore", "cupy", "acl"}
    assert sum(shape.found == "always" for shape in SHAPES) >= len(SHAPES) - 3


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_V1_a_missing_link_is_reported_in_one_run_that_passes(shape: Shape) -> None:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        shape.broken()
    assert bool(report.races or report.refills) is (shape.found == "always"), str(report)
    assert bool(report.functions.unknown) or shape.found != "strict"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_V1_the_complete_order_is_not_reported(shape: Shape) -> None:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        shape.fixed()
    assert not report.all, str(report)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.found == "always"], ids=lambda shape: shape.name)
def test_V10_the_suggested_lines_silence_what_is_reported(shape: Shape, tmp_path: Path) -> None:
    assert silenced(shape, tmp_path)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.found == "strict"], ids=lambda shape: shape.name)
def test_V20_strict_checks_stop_where_a_read_is_not_known(shape: Shape) -> None:
    assert found_strictly(shape)
