"""Strict mode: the classes of a dialect show only what the mirrored package has."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.usefixtures("backend")

OBJECTS = """
import halstream as hs
{first}
from halstream.torch import Event, Stream, cuda
from halstream.cupy import cuda as cupy
from halstream.paddle import device
from halstream.paddle.base import core as base
from halstream.mindspore import hal
{second}
place = "custom_cpu" if hs.backend() == "host" else "npu"
streams = [Stream("cuda"), cuda.Stream(), cupy.Stream(), device.Stream(place), hal.Stream()]
events = [Event("cuda"), cuda.Event(), cupy.Event(), device.Event(place), hal.Event()]
"""


@pytest.fixture
def strict() -> Any:
    hs.strict()
    yield
    hs.strict(False)


WAYS = {
    "by the variable": ({"HALSTREAM_STRICT": "1"}, "", ""),
    "before the import": ({}, "hs.strict()", ""),
    "after the import": ({}, "", "hs.strict()"),
}


@pytest.mark.parametrize(("env", "first", "second"), WAYS.values(), ids=WAYS.keys())
def test_core_names_of_dialect_objects_raise(child: Child, env: dict[str, str], first: str, second: str) -> None:
    done = child(
        OBJECTS.format(first=first, second=second)
        + """
names = {"call", "call_checked", "call_native", "launch", "nop", "delay", "describe", "handle", "closed"}
for object in streams + events:
    cls = type(object)
    for name in names & set(dir(hs.Stream if isinstance(object, hs.Stream) else hs.Event)):
        for holder in (object, cls):
            try:
                getattr(holder, name)
            except AttributeError as exc:
                assert "strict mode" in str(exc) and name in str(exc), exc
            else:
                raise SystemExit(f"{cls} shows {name}")
        assert not hasattr(object, name) and name not in dir(object)
core = hs.Stream()
core.call(lambda: None)
core.launch, core.handle, hs.Event().closed
print("done")
""",
        env=env,
    )
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_the_mirrored_names_work_in_strict_mode(child: Child) -> None:
    done = child(
        OBJECTS.format(first="hs.strict()", second="")
        + """
from halstream.testing import Gate
for stream, event in zip(streams, events):
    repr(stream), repr(event), hash(stream), stream == stream
    with Gate(stream):
        if hasattr(stream, "record_event"):
            stream.record_event(event)
        else:
            stream.record(event)
        stream.wait_event(event)
    stream.synchronize()
    event.synchronize()
    hs.Stream.call(stream, print, "called")  # the core's function, by its name
    stream.synchronize()
other = cuda.Stream()
streams[1].wait_stream(other)
assert streams[1].priority == 0 and streams[1].cuda_stream and streams[1].device.index == 0
assert streams[2].ptr and streams[2].done and streams[2].priority == 0
assert streams[3].device == device.Stream(place).device and streams[3].stream_base
assert streams[4].id and streams[4].device_name

class Own(cuda.Stream):
    def call(self):
        return "mine"

assert Own().call() == "mine"
assert not hasattr(Own(), "launch")
print("done")
"""
    )
    assert done.stdout == "called\n" * 5 + "done\n", done.stdout + done.stderr


def test_leaving_strict_mode_shows_the_names_again(child: Child) -> None:
    done = child(
        OBJECTS.format(first="", second="")
        + """
classes = [type(object) for object in streams + events]
before = {cls: {n: vars(cls).get(n) for n in dir(cls)} for cls in classes}
hs.strict()
hs.strict()
hs.strict(False)
for cls, names in before.items():
    assert {n: vars(cls).get(n) for n in dir(cls)} == names, cls
for stream in streams:
    stream.call(print, "called")
    stream.synchronize()
print("done")
"""
    )
    assert done.stdout == "called\n" * 5 + "done\n", done.stdout + done.stderr
