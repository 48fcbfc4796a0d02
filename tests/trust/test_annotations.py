"""Ranges that a program names stand on the timeline beside the work they enclose."""

from __future__ import annotations

from typing import Any

import pytest
from perfetto_help import read

PROGRAM = """
    import threading
    import halstream as hs
    from halstream.cupyx.profiler import time_range
    from halstream.torch.cuda import nvtx

    nvtx.range_push("before the runtime is used")
    stream = hs.Stream()
    nvtx.range_pop()

    @time_range()
    def step():
        stream.call(len, "x")
        stream.synchronize()

    with time_range("outer", color_id=1):
        with nvtx.range("inner {}", 7):
            step()
        nvtx.mark("here")

    def other():
        with nvtx.range("elsewhere"):
            pass

    thread = threading.Thread(target=other, name="worker")
    thread.start()
    thread.join()
    number = nvtx.range_start("started")
    nvtx.range_end(number)
    nvtx.range_push("never ended")
    """


@pytest.mark.needs("times")
def test_named_ranges_are_in_the_trace(cli: Any) -> None:
    cli.script(PROGRAM)
    done = cli("trace", "prog.py", "-o", "out.pftrace")
    assert done.returncode == 0, done.stderr
    trace = read(cli.folder / "out.pftrace")
    found = {one.name: one for one in trace.of("annotation")}
    assert set(found) == {"outer", "inner 7", "step", "here", "elsewhere", "started"}
    outer, inner, step = found["outer"], found["inner 7"], found["step"]
    assert outer.begin <= inner.begin <= step.begin < step.end <= inner.end <= outer.end
    assert found["here"].instant and inner.end <= found["here"].begin <= outer.end
    assert (outer.track, found["elsewhere"].track) == ("MainThread", "worker")
    # On the clock of the work: the function of the step ran inside it.
    (call,) = trace.of("stream")
    assert step.begin <= call.begin <= call.end <= step.end
