"""Programs of halstream.cuda.core under the tools: what is missing is found, and said in the words of cuda.core."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream._schedules.block import schedule
from halstream.cuda import core
from halstream.testing import Gate
from sanitize_help import mended, run

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("host")]

#: About half of all schedules show a program's fault: of the first ten at least three.
SEEDS = 10

START = """
import numpy as np
from halstream.cuda import core

PTX = b'''
.version 7.0
.target sm_50
.address_size 64
.visible .entry increment(.param .u64 to)
{
    .reg .u64 %to;
    .reg .u32 %x;
    ld.param.u64 %to, [to];
    ld.global.u32 %x, [%to];
    add.u32 %x, %x, 1;
    st.global.u32 [%to], %x;
    ret;
}
'''
device = core.Device()
device.set_current()
make, use = device.create_stream(), device.create_stream()
kernel, config = core.ObjectCode.from_ptx(PTX).get_kernel("increment"), core.LaunchConfig(grid=1, block=1)
out = core.LegacyPinnedMemoryResource().allocate(4)
x = device.allocate(4, stream=make)
x.fill(0, stream=make)
"""

#: Each lacks one line, and the line that is proposed for it.
BROKEN = {
    "a wait for a stream": (
        """
        core.launch(make, config, kernel, x)
        x.copy_to(out, stream=use)
        use.sync()
        make.sync()
        right = np.from_dlpack(out).tolist() == [1, 0, 0, 0]
        """,
        "use.wait(make)",
        "x.copy_to(out, stream=use)",
    ),
    "a wait for an event": (
        """
        core.launch(make, config, kernel, x)
        done = make.record()
        x.copy_to(out, stream=use)
        use.sync()
        make.sync()
        right = np.from_dlpack(out).tolist() == [1, 0, 0, 0]
        """,
        "use.wait(done)",
        "x.copy_to(out, stream=use)",
    ),
    "a wait for the default stream": (
        """
        make.sync()
        core.launch(core.LEGACY_DEFAULT_STREAM, config, kernel, x)
        x.copy_to(out, stream=use)
        use.sync()
        core.LEGACY_DEFAULT_STREAM.sync()
        right = np.from_dlpack(out).tolist() == [1, 0, 0, 0]
        """,
        "use.wait(core.LEGACY_DEFAULT_STREAM)",
        "x.copy_to(out, stream=use)",
    ),
    "a wait before memory goes back": (
        """
        use.wait(make)
        x.copy_to(out, stream=use)
        x.close(make)
        y = device.allocate(4, stream=make)
        y.fill(9, stream=make)
        make.sync()
        use.sync()
        right = np.from_dlpack(out).tolist() == [0, 0, 0, 0]
        """,
        "make.wait(use)",
        "x.close(make)",
    ),
    "an order of branches": (
        """
        make.sync()
        builder = device.create_graph_builder().begin_building()
        left, right_branch = builder.split(2)
        core.launch(left, config, kernel, x)
        core.launch(right_branch, config, kernel, x)
        graph = core.graph.GraphBuilder.join(left, right_branch).end_building().complete()
        graph.launch(use)
        use.sync()
        right = True
        """,
        "right_branch.stream.wait(builder.stream)",
        "core.launch(right_branch, config, kernel, x)",
    ),
}


def program(name: str) -> str:
    return START + textwrap.dedent(BROKEN[name][0])


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_missing_is_found_where_it_is(tmp_path: Path, name: str) -> None:
    report = run(tmp_path / "broken.py", program(name))
    assert len(report.races) == 1, report
    found = report.races[0]
    _, fix, line = BROKEN[name]
    place = program(name).splitlines().index(line) + 1
    assert f"fix: before {tmp_path / 'broken.py'}:{place}" in found.text, found.text
    assert found.fix == fix, found.text


@pytest.mark.parametrize("name", BROKEN)
def test_the_line_that_is_proposed_mends_it(tmp_path: Path, name: str) -> None:
    source = program(name)
    report = run(tmp_path / "broken.py", source)
    assert not run(tmp_path / "mended.py", mended(source, report.races[0])).all


def test_a_host_that_does_not_wait_is_told_to(tmp_path: Path) -> None:
    source = START + textwrap.dedent(
        """
        import halstream as hs
        seen = np.from_dlpack(out)
        x.copy_to(out, stream=make)
        hs.host_access(seen)
        make.sync()
        """
    )
    report = run(tmp_path / "broken.py", source)
    assert [found.fix for found in report.races] == ["make.sync()"], report
    assert not run(tmp_path / "mended.py", mended(source, report.races[0])).all


@pytest.mark.parametrize("name", ["a wait for a stream", "a wait before memory goes back"])
def test_schedules_show_the_fault_and_not_its_twin(name: str) -> None:
    text, fix, line = BROKEN[name]

    def right(source: str, seed: int) -> bool:
        names: dict[str, Any] = {"__name__": "program"}
        with schedule(f"random({seed})"):
            exec(START + textwrap.dedent(source), names)
        return bool(names["right"])

    twin = text.replace(line, f"{fix}; {line}")
    assert not all(right(text, seed) for seed in range(SEEDS))
    assert all(right(twin, seed) for seed in range(SEEDS))


def test_a_wait_that_can_never_end_is_an_error(hold: Callable[[Any], Any]) -> None:
    device = core.Device(0)
    device.set_current()
    first, second = device.create_stream(), device.create_stream()
    gate = Gate(first)
    event = first.record()
    second.wait(event)
    for wait in (second.sync, event.sync, device.sync):
        with pytest.raises(hs.StallError, match=r"^this wait can never end: everything that could end it waits, too"):
            wait()
    opener = threading.Thread(target=gate.open)
    opener.start()
    second.sync()
    opener.join()
