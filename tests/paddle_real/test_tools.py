"""Traces, tokens and stall reports of programs of the real Paddle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Child

#: The loader's work is not waited for, and the assertion sees it under some schedules.
RACE = """
import paddle
loader = paddle.device.Stream()
weight = paddle.full([64], 3.0)
paddle.device.synchronize()
with paddle.device.stream_guard(loader):
    inputs = paddle.full([64], 1.0) * 2
total = weight * inputs
paddle.device.synchronize()
assert float(total.sum()) == 384, float(total.sum())
"""


def test_Y18_a_trace_has_the_operators_and_their_lines(child: Child, tmp_path: Path) -> None:
    program = "import halstream.paddle.plugin\n" + RACE.lstrip()
    done = child(program, "-m", "halstream", "trace", "-o", str(tmp_path / "trace.pftrace"))
    assert "the trace is in" in done.stderr, done.stderr
    data = (tmp_path / "trace.pftrace").read_bytes()
    for text in (b"paddle::full", b"paddle::multiply", b"program.py"):
        assert text in data, text


@pytest.mark.timeout(280)  # each run imports Paddle
def test_Y18_a_token_repeats_a_failure(child: Child) -> None:
    found = child(RACE, "-m", "halstream", "run", "--paddle", "--schedules", "8", "--shrink-runs", "0")
    assert found.returncode == 1, found.stdout + found.stderr
    [token] = set(re.findall(r"hs1-[\w.+-]+", found.stdout))
    again = child(RACE, "-m", "halstream", "replay", "--paddle", token)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "failed again: AssertionError" in again.stdout + again.stderr


def test_Y18_a_wait_that_can_never_end_is_reported(child: Child) -> None:
    text = """
    import halstream.paddle.plugin
    import halstream as hs
    import paddle
    from halstream.testing import Gate

    paddle.set_device("custom_cpu")
    stream = paddle.device.Stream()
    gate = Gate(hs.Stream.from_handle(stream.stream_base.raw_stream))
    with paddle.device.stream_guard(stream):
        result = paddle.ones([4]) * 2
    stream.synchronize()
    """
    done = child(text)
    assert done.returncode == 1
    assert "StallError" in done.stderr and "this wait can never end" in done.stderr, done.stderr
    assert "gate" in done.stderr and "program.py" in done.stderr
