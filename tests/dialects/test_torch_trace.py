"""torch.cuda._gpu_trace: callbacks on the life of streams and events.

Callbacks stay for the life of a process, so each test has one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]

PREPARE = """
import halstream.torch as torch
from halstream.torch import cuda
from halstream.torch.cuda import _gpu_trace as trace

seen = []
def on(kind):
    getattr(trace, f"register_callback_for_{kind}")(lambda *args: seen.append((kind, *args)))

torch._C._activate_gpu_trace()
"""


@pytest.fixture
def traced(child: Callable[..., Any]) -> Callable[[str], str]:
    def run(source: str) -> str:
        done = child(PREPARE + source)
        assert done.returncode == 0, done.stderr
        return str(done.stderr)

    return run


@pytest.mark.row(85)
def test_creation_and_deletion_of_an_event(traced: Callable[[str], str]) -> None:
    traced(
        """
on("event_creation"); on("event_deletion")
never = cuda.Event()
e = cuda.Event()
assert seen == []
e.record()
e.record()
handle = e._as_parameter_.value
assert seen == [("event_creation", handle)], seen
del never
assert len(seen) == 1, seen
del e
assert seen[1:] == [("event_deletion", handle)], seen
"""
    )


@pytest.mark.row(86)
def test_records_and_waits(traced: Callable[[str], str]) -> None:
    traced(
        """
on("event_record"); on("event_wait")
e, s = cuda.Event(), cuda.Stream()
e.wait()
assert seen == []
e.record()
e.wait()
h = e._as_parameter_.value
assert seen == [("event_record", h, 0), ("event_wait", h, 0)], seen
seen.clear()
s.record_event(e)
cuda.default_stream().wait_event(e)
assert seen == [("event_record", h, s.cuda_stream), ("event_wait", h, 0)], seen
seen.clear()
s.wait_stream(torch.Stream())
assert [(kind, len(args)) for kind, *args in seen] == [("event_record", 2), ("event_wait", 2)]
assert seen[1][2] == s.cuda_stream and seen[0][1] == seen[1][1], seen
s.synchronize()
"""
    )


@pytest.mark.row(87)
def test_creation_of_a_stream(traced: Callable[[str], str]) -> None:
    traced(
        """
on("stream_creation")
cuda.default_stream()
assert seen == []
s = cuda.Stream()
assert seen == [("stream_creation", s.cuda_stream)], seen
"""
    )


@pytest.mark.row(88)
def test_waits_of_the_host_and_callbacks_that_raise(traced: Callable[[str], str]) -> None:
    log = traced(
        """
def broken(*args):
    raise LookupError("a callback of the test")
trace.register_callback_for_stream_synchronization(broken)
for kind in ("device_synchronization", "stream_synchronization", "event_synchronization"):
    on(kind)
    on(kind)
e, s = cuda.Event(), cuda.Stream()
e.record(s)
cuda.synchronize()
assert seen == [("device_synchronization",)] * 2, seen
seen.clear()
s.synchronize()
assert seen == [("stream_synchronization", s.cuda_stream)] * 2, seen
seen.clear()
e.synchronize()
assert seen == [("event_synchronization", e._as_parameter_.value)] * 2, seen
"""
    )
    assert "LookupError: a callback of the test" in log


def test_without_activation_nothing_is_called(child: Callable[..., Any]) -> None:
    done = child(
        PREPARE.replace("torch._C._activate_gpu_trace()", "")
        + """
import halstream
on("event_record"); on("stream_synchronization")
cuda.Event().record()
cuda.Stream().synchronize()
assert seen == []
assert type(cuda.Stream.record_event) is type(halstream.Stream.record) is type(str.lower)
assert type(cuda.Event.wait) is type(halstream.Event.wait) is type(str.lower)
"""
    )
    assert done.returncode == 0, done.stderr
