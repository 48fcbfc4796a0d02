"""Launches of graphs, as the sanitizer orders them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitize_help import mended, run

pytestmark = pytest.mark.needs("graphs")

LAUNCHES = """
    import halstream as hs
    x = hs.empty(64, "f4")
    main, one, two = hs.Stream(), hs.Stream(), hs.Stream()
    with hs.capture(main) as graph:
        x.fill(1, main)
    run, other = graph.instantiate(), graph.instantiate()
    run.launch(one)
    {second}.launch(two)
    hs.synchronize()
    """


def test_V27_launches_of_one_executable_follow_each_other(backend: str, tmp_path: Path) -> None:
    assert not run(tmp_path / "same.py", LAUNCHES.format(second="run"))


def test_V27_launches_of_two_executables_have_no_order(backend: str, tmp_path: Path) -> None:
    source = LAUNCHES.format(second="other")
    (found,) = run(tmp_path / "two.py", source)
    assert found.fix == "two.wait(one.record())"
    assert not run(tmp_path / "mended.py", mended(source, found))
