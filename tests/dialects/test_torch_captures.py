"""Streams and events of torch in a capture of `halstream.capture`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.torch as torch
import pytest
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]


@pytest.mark.row(92)
@pytest.mark.needs("graphs")
def test_a_stream_knows_whether_it_captures() -> None:
    s, other = cuda.Stream(), torch.Stream()
    assert s.is_capturing() is False
    with hs.capture(s), cuda.stream(s):
        assert s.is_capturing() is True
        assert cuda.is_current_stream_capturing() is True
        assert other.is_capturing() is False
        with cuda.stream(other):
            assert cuda.is_current_stream_capturing() is False
    assert s.is_capturing() is False
    assert cuda.is_current_stream_capturing() is False
    assert torch.Stream("cpu").is_capturing() is False


def test_whether_the_current_stream_captures_is_known_before_the_first_use() -> None:
    program = "from halstream.torch import cuda\nprint(cuda.is_current_stream_capturing(), cuda.is_initialized())\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["False", "False"]


@pytest.mark.needs("graphs")
@pytest.mark.parametrize("way", ["event", "stream"])
def test_G14_external_events_connect_a_graph_with_work_outside_of_it(way: str, hold: Callable[[Any], Any]) -> None:
    main, side, ran = cuda.Stream(), cuda.Stream(), []
    ready, done = cuda.Event(external=True), cuda.Event(external=True)
    with hs.capture(main) as graph:
        if way == "event":
            ready.wait(main)
        else:
            main.wait_event(ready)
        main.call(ran.append, 1)
        if way == "event":
            done.record(main)
        else:
            main.record_event(done)
    executable = graph.instantiate()
    for round_ in (1, 2):
        gate = hold(side)
        side.record_event(ready)
        executable.launch(main)
        assert not main.query()
        gate.open()
        done.synchronize()
        main.synchronize()
        assert ran == [1] * round_


@pytest.mark.needs("graphs")
def test_an_event_of_a_capture_shows_itself_and_is_asked_about_with_errors_of_torch() -> None:
    stream = cuda.Stream()
    first, second = (cuda.Event(enable_timing=True) for _ in range(2))
    with hs.capture(stream):
        first.record(stream)
        stream.nop()
        second.record(stream)
        shown, inside = repr(first), first.cuda_event
        assert hex(inside)[2:] in shown
    assert (repr(first), first.cuda_event) == (shown, inside)
    with pytest.raises(torch.AcceleratorError, match="in a capture") as info:
        first.elapsed_time(second)  # both were recorded
    assert info.value.error_code == 907
