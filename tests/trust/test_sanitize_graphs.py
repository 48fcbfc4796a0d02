"""Launches of graphs, as the sanitizer orders them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
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


CAPTURED = """
    import halstream as hs
    x, y = hs.empty(64, "f4"), hs.empty(64, "f4")
    main, side = hs.Stream(), hs.Stream()
    hs.synchronize()
    with hs.capture(main) as graph:
        {before}
        x.fill(1, main)
        {between}
        y.copy_from(x, side)
        main.wait(side)
    """


def test_V28_nodes_without_a_path_are_reported_at_the_end_of_the_capture(backend: str, tmp_path: Path) -> None:
    source = CAPTURED.format(before="side.wait(main)", between="pass")
    (found,) = run(tmp_path / "fork.py", source)
    assert found.why == "no path in the graph"
    assert [one.frames[0].line for one in (found.first, found.second)] == [8, 10]
    assert found.fix == "side.wait(main.record())"
    assert "in the capture: the graph has no path between them" in str(found)
    assert not run(tmp_path / "mended.py", mended(source, found))


HELPER = """
    import halstream as hs
    x = hs.empty(64, "f4"); hs.synchronize()
    def work(stream):
        x.fill(1, stream)
    def captured():
        m, n = hs.Stream(), hs.Stream()
        with hs.capture(m) as graph:
            n.wait(m)
            {both}
            m.wait(n)
    captured()
    """


@pytest.mark.parametrize(
    ("both", "text"),
    [
        (
            "for stream in (m, n): work(stream)",
            "between the two calls, in the capture: no line here names both streams",
        ),
        ("work(m), work(n)", "both are calls of the one line"),
    ],
)
def test_V28_the_host_cannot_wait_between_two_nodes_of_a_capture(
    both: str, text: str, backend: str, tmp_path: Path
) -> None:
    path = tmp_path / "helper.py"
    path.write_text(textwrap.dedent(HELPER.format(both=both)))
    command = [sys.executable, "-m", "halstream", "run", "--sanitize", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert text in done.stderr
    assert "synchronize()" not in done.stderr.partition("why:")[2]


def test_V28_nodes_with_a_path_are_not(backend: str, tmp_path: Path) -> None:
    assert not run(tmp_path / "path.py", CAPTURED.format(before="pass", between="side.wait(main)"))


def test_V28_a_node_has_no_order_with_work_outside_of_its_graph(backend: str, tmp_path: Path) -> None:
    source = CAPTURED.format(before="pass", between="side.wait(main)")
    assert not run(tmp_path / "outside.py", source + "x.fill(2, hs.Stream())\n    hs.synchronize()\n    ")
