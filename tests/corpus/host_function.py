"""A host function writes a staging buffer that a copy still reads.

Seen: uploads of several small buffers in a row, of which some arrived with the
contents of another: what recycled the staging memory ran on the host before the
copy from it was done (LuisaGroup/LuisaCompute #248).
Missing: the function's stream does not wait for the copy.
Passes by luck: the copy was enqueued first, on an idle stream, and it takes a
thread and Python's lock to run the function.
"""

from __future__ import annotations

import numpy as np
from halstream.cupy import cuda

from ._host import LIMIT, Host, N, pinned_numbers, rest


def _run(ordered: bool) -> None:
    host = Host()
    uploads, control = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    staging, target = pinned_numbers(1), host.numbers(0)
    try:
        host.parse()
        target.copy_from(staging, uploads)
        copied = uploads.record()
        host.step()
        if ordered:
            control.wait_event(copied)
        # launch_host_func cannot say what the function works on.
        control.call(np.copyto, staging, 2, writes=[staging])
        control.synchronize(timeout=LIMIT)
        assert target.numpy(uploads).tolist() == [1] * N
    finally:
        rest(uploads, control)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
