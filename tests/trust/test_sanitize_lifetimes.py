"""Memory that is dropped while another stream still uses it: found, as the mirrored allocators give it out again."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._schedules.block import schedule
from sanitize_help import mended, run

#: About half of all schedules show a program's fault: of the first ten at least three.
SEEDS = 10

# Each makes `right`: whether the other stream read what was there when it was enqueued. The
# line MENDED is what orders the two, and UNTRACKED what the program has instead.
_DROPPED = """
    x.copy_to(out, side)
    MENDED
    del x
    y = hs.empty(4096, np.uint8, stream=main)
    y.fill(2, main)
    main.synchronize()
    side.synchronize()
    right = bool((out == 1).all())
"""

HALSTREAM = (
    """
    import halstream as hs
    import numpy as np
    main, side = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    out = hs.pinned_empty(4096, np.uint8)
    x = hs.empty(4096, np.uint8, stream=main)
    x.fill(1, main)
    side.wait(main.record())
"""
    + _DROPPED
)

TORCH = (
    """
    import halstream as hs
    import numpy as np
    from halstream.torch import cuda
    main, side = cuda.Stream(), cuda.Stream()
    out = hs.pinned_empty(4096, np.uint8)
    x = hs.empty(4096, np.uint8, stream=main)
    x.fill(1, main)
    side.wait_stream(main)
"""
    + _DROPPED
)

PADDLE = """
    import halstream.paddle as paddle
    from halstream.paddle import device
    device.set_device("gpu:0")
    main, side = device.Stream(), device.Stream()
    with device.stream_guard(main):
        x = paddle.ones([4096])
        x = x + 1
    side.wait_stream(main)
    with device.stream_guard(side):
        z = x * 2
    MENDED
    del x
    with device.stream_guard(main):
        y = paddle.ones([4096])
        y = y * 9
    main.synchronize()
    side.synchronize()
    right = float(z.numpy()[0]) == 4.0
"""

CUPY = """
    import halstream.cupy as cp
    main, side = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    with main:
        x = cp.ones(4096, dtype=cp.float32)
        x += 1
    side.wait_event(main.record())
    with side:
        z = x * 2
    MENDED
    del x
    with main:
        y = cp.ones(4096, dtype=cp.float32)
        y *= 9
    main.synchronize()
    side.synchronize()
    right = float(z.get()[0]) == 4.0
"""

MINDSPORE = """
    import halstream.mindspore as ms
    from halstream.mindspore import hal
    main, side = hal.Stream(), hal.Stream()
    with hal.StreamCtx(main):
        x = ms.ops.ones(4096, ms.float32)
        x = x + 1
    side.wait_stream(main)
    with hal.StreamCtx(side):
        z = x * 2
    MENDED
    del x
    with hal.StreamCtx(main):
        y = ms.ops.ones(4096, ms.float32)
        y = y * 9
    main.synchronize()
    side.synchronize()
    right = float(z.asnumpy()[0]) == 4.0
"""

BROKEN = {
    "halstream": (HALSTREAM, "x.record_stream(side)", "main.wait(side.record())"),
    "torch": (TORCH, "x.record_stream(side)", "main.wait_stream(side)"),
    "paddle": (PADDLE, "main.wait_event(side.record_event())", "main.wait_stream(side)"),
    "cupy": (CUPY, "main.wait_event(side.record())", "main.wait_event(side.record())"),
}


def outcome(source: str, spec: str) -> bool:
    """Run a program under a schedule; return whether the other stream read what it was to read."""
    names: dict[str, Any] = {"__name__": "program"}
    with schedule(spec):
        exec(textwrap.dedent(source), names)
    return bool(names["right"])


@pytest.mark.parametrize("name", BROKEN)
def test_M22_memory_that_is_dropped_while_another_stream_uses_it_is_found(
    backend: str, tmp_path: Path, name: str
) -> None:
    source, fix, _ = BROKEN[name]
    report = run(tmp_path / "broken.py", source.replace("MENDED", ""))
    assert report.races
    found = report.races[0]
    assert found.memory == "given out again while in use", found.text
    assert found.fix == fix, found.text
    assert "was freed and given out again, in the order of" in found.text


@pytest.mark.parametrize("name", BROKEN)
def test_M22_the_line_of_the_dialect_orders_it(backend: str, tmp_path: Path, name: str) -> None:
    source, fix, wait = BROKEN[name]
    lines = {wait, fix} if "record_stream" in fix else {wait}
    for line in sorted(lines):
        report = run(tmp_path / "mended.py", source.replace("MENDED", line))
        assert not report.all, f"{line}: {report}"


@pytest.mark.needs("schedules")
@pytest.mark.parametrize("name", BROKEN)
def test_M22_schedules_find_it_and_not_its_twin(backend: str, name: str) -> None:
    source, _, wait = BROKEN[name]
    broken, twin = source.replace("MENDED", ""), source.replace("MENDED", wait)
    assert not all(outcome(broken, f"random({seed})") for seed in range(SEEDS))
    assert all(outcome(twin, f"random({seed})") for seed in range(SEEDS))


def test_M22_an_allocator_that_tracks_streams_by_itself_waits_for_them(backend: str, tmp_path: Path) -> None:
    source = MINDSPORE.replace("MENDED", "")
    assert not run(tmp_path / "tracked.py", source).all
    if backend == "host":
        assert all(outcome(source, f"random({seed})") for seed in range(SEEDS))


def test_M22_a_program_that_is_not_checked_keeps_the_memory_until_it_is_read(
    backend: str, hold: Callable[[Any], Any]
) -> None:
    main, side = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    out, x = hs.pinned_empty(64, np.uint8), hs.empty(64, np.uint8, stream=main)
    x.fill(1, main)
    main.synchronize()
    gate = hold(side)
    x.copy_to(out, side)
    address = x.ptr
    del x
    assert hs.empty(64, np.uint8, stream=main).ptr != address
    gate.open()


ACL = """
    from halstream.acl import rt
    rt.set_device(0)
    s, _ = rt.create_stream()
    other, _ = rt.create_stream()
    x, _ = rt.malloc(4096, 0)
    y, _ = rt.malloc(4096, 0)
    rt.memset_async(x, 4096, 1, 4096, s)
    rt.memcpy_async(y, 4096, x, 4096, 3, s)
    rt.synchronize_stream(MENDED)
    rt.free(x)
    rt.synchronize_stream(s)
    rt.free(y)
    rt.destroy_stream(s)
    rt.destroy_stream(other)
"""


@pytest.mark.usefixtures("backend")
def test_M24_a_free_that_waits_for_nothing_is_reported_and_its_line_orders_it(tmp_path: Path) -> None:
    source = ACL.replace("MENDED", "other")
    report = run(tmp_path / "broken.py", source)
    assert [found.memory for found in report.races] == ["freed while in use"] * 2, "of the fill and of the copy"
    found = report.races[0]
    assert "the host frees the memory, by a call that waits for nothing" in found.text
    assert found.fix == "rt.synchronize_stream(s)", found.text
    assert not run(tmp_path / "mended.py", mended(source, found)).all


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("wait", ["rt.synchronize_stream(s)", "rt.synchronize_device()"])
def test_M24_a_free_behind_a_wait_of_the_host_is_not_reported(tmp_path: Path, wait: str) -> None:
    source = ACL.replace("rt.synchronize_stream(MENDED)", wait)
    report = run(tmp_path / "twin.py", source)
    assert report.functions is not None and not report.all, str(report)


EMPTIED = """
    import halstream as hs
    from halstream.torch import cuda
    side, x, on_host = cuda.Stream(), hs.empty(1024), hs.pinned_empty(1024)
    x.copy_to(on_host, side)
    x.record_stream(side)
    del x
    WAIT
    hs.host_access(on_host, "r")
    cuda.synchronize()
"""


@pytest.mark.parametrize(("wait", "found"), [("cuda.empty_cache()", 1), ("side.synchronize()", 0)])
def test_to_empty_the_cache_is_no_wait_that_a_program_may_rely_on(
    backend: str, tmp_path: Path, wait: str, found: int
) -> None:
    assert len(run(tmp_path / "program.py", EMPTIED.replace("WAIT", wait))) == found
