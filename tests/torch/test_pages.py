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
import halstream.torch.cuda_on_host
import halstream as hs, torch

def read(wait):
    losses = torch.full((4096,), 2.0, device="cuda")
    back = torch.zeros(4096, pin_memory=True)
    view = back.numpy()  # what NumPy reads of it later, torch does not see
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        back.copy_(losses, non_blocking=True)
    losses.record_stream(side)
    if wait:
        side.synchronize()
    view.sum()
    torch.cuda.synchronize()

for wait in (True, False):
    for pages in (False, True):
        with hs.sanitize(on="collect", pages=pages) as report:
            read(wait)
        print(wait, pages, [(f.category, f.second.kind) for f in report])
"""


def test_V23_a_read_of_a_pinned_result_by_a_view_is_seen(program: Any) -> None:
    done = program(READ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True False []",
        "True True []",
        "False False []",
        "False True [('race', 'host read')]",
    ]
