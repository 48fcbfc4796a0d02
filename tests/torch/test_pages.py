"""Accesses to torch's memory that nobody declares, seen by the pages of memory."""

from __future__ import annotations

from typing import Any

import halstream as hs
import pytest

# The program imports torch, which takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def watchable() -> None:
    try:
        with hs.sanitize(on="collect", pages=True):
            pass
    except hs.NotSupportedError as exc:
        pytest.skip(str(exc))


READ = """
import linecache
import halstream.torch.cuda_on_host
import halstream as hs, torch
from halstream.testing import Gate

def read(wait):
    losses = torch.full((4096,), 2.0, device="cuda")
    back = torch.zeros(4096, pin_memory=True)
    view = back.numpy()  # what NumPy reads of it later, torch does not see
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    # While the copy runs it keeps the pages open, and what others touch there then is not seen.
    gate = Gate(hs.Stream.from_handle(side.cuda_stream))
    with torch.cuda.stream(side):
        back.copy_(losses, non_blocking=True)
    losses.record_stream(side)
    if wait:
        gate.open()
        side.synchronize()
    view.sum()
    gate.open()
    torch.cuda.synchronize()

for wait in (True, False):
    for pages in (False, True):
        with hs.sanitize(on="collect", pages=pages) as report:
            read(wait)
        print(wait, pages, [(f.category, f.second.kind) for f in report])
        for found in report:
            print(linecache.getline(*found.second.frames[0][:2]).strip())
"""


def test_V23_a_read_of_a_pinned_result_by_a_view_is_seen(program: Any) -> None:
    done = program(READ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True False []",
        "True True []",
        "False False []",
        "False True [('race', 'host read')]",
        "view.sum()",
    ]


GRAPH = """
import halstream.torch.cuda_on_host
import halstream as hs, torch

with hs.sanitize(on="collect", pages=True) as report:
    square, rows = torch.ones(1000, 1000, device="cuda"), torch.zeros(20, 4096, device="cuda")
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            square @ square
    torch.cuda.synchronize()
    with torch.cuda.stream(first):
        graph.replay()
    with torch.cuda.stream(second):
        for row in rows:
            row.add_(1)  # while the nodes run
    torch.cuda.synchronize()
print(report.all)
"""


def test_V23_what_others_touch_is_no_access_of_a_node_that_runs(program: Any) -> None:
    done = program(GRAPH)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


COPY = """
import halstream.torch.cuda_on_host
import halstream as hs, torch
from halstream.testing import schedule

for wait in (True, False):
    with schedule("fifo"), hs.sanitize(on="collect", pages=True) as report:
        numbers = torch.full((1024,), 3, device="cuda")
        back = torch.zeros(1024, dtype=torch.int64, pin_memory=True)
        view = back.numpy()
        torch.cuda.synchronize()
        back.copy_(numbers, non_blocking=True)
        copied = torch.cuda.current_stream().record_event()
        (copied if wait else torch.cuda.Event()).synchronize()  # which lets the copy run
        view.sum()
        torch.cuda.synchronize()
    print(wait, [(f.category, f.second.kind) for f in report])
"""


def test_V23_an_operator_closes_the_pages_that_it_has_opened(program: Any) -> None:
    done = program(COPY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True []", "False [('race', 'host read')]"]


def test_a_read_that_an_operator_follows_has_the_place_of_the_operator(program: Any) -> None:
    done = program(
        READ.partition("for wait in")[0].replace("    view.sum()\n", "    view[0]\n    losses.add_(1)  # follows\n")
        + """
with hs.sanitize(on="collect", pages=True) as report:
    read(False)
    torch.cuda.synchronize()
import linecache
for f in report:
    if f.second.host:
        print(linecache.getline(__file__, f.second.frames[0].line).strip())
"""
    )
    assert (done.returncode, done.stdout) == (0, "losses.add_(1)  # follows\n"), done.stderr
