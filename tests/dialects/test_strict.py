"""Strict mode: the classes and modules of a dialect show only what the mirrored package has."""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream._dialects._not_built import public_names
from halstream.cupy import cuda as cupy
from halstream.torch import cuda

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


@pytest.mark.needs("graphs")
@pytest.mark.parametrize(("env", "first", "second"), WAYS.values(), ids=WAYS.keys())
def test_objects_of_cuda_core_show_its_names_only(child: Child, env: dict[str, str], first: str, second: str) -> None:
    done = child(
        f"""
        import halstream as hs
        {first}
        from halstream.cuda import core
        {second}
        device = core.Device()
        device.set_current()
        stream = device.create_stream()
        event = stream.record(options={{"timing_enabled": True}})
        default = device.default_stream
        for thing, names in (
            (stream, "call launch nop synchronize query wait_event"),
            (default, "call launch nop synchronize query wait_event"),
            (event, "query synchronize elapsed closed"),
            (device, "ordinal priority_range synchronize"),
        ):
            for name in names.split():
                assert not hasattr(thing, name) and name not in dir(thing), (thing, name)
        stream.wait(event)
        stream.wait(device.create_stream())
        default.sync()
        device.sync()
        graph = stream.create_graph_builder().begin_building().end_building().complete()
        graph.launch(stream)
        device.allocate(4, stream=stream).close()
        stream.sync()
        assert stream.handle and event.is_done and event - event == 0 and stream.device is device
        try:
            stream.sync(timeout=10)
        except TypeError as exc:
            print(exc)
        """,
        env=env,
    )
    assert "sync() has no parameter 'timeout' in strict mode" in done.stdout, done.stdout + done.stderr


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


DIALECTS = ("torch", "paddle", "mindspore", "cupy", "cupyx", "cuda", "acl")

# Public names of the real modules, as tests/signatures/generate.py reads them from the wheels.
REAL: dict[str, str] = json.loads((Path(__file__).parents[1] / "signatures" / "modules.json").read_text())["names"]

# Names of the real packages that those wheels do not have.
OTHER_BUILDS = {"paddle.base.core.get_cuda_device_count"}  # for GPUs

PUBLIC = """
import importlib, json, pkgutil
import halstream as hs
{first}
found = {{}}
package = importlib.import_module("halstream.{dialect}")
modules = [info.name for info in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
modules = [n for n in modules if n not in ("halstream.torch.cuda_on_host", "halstream.paddle.plugin")]  # they take over
for name in [package.__name__, *(n for n in modules if not any(p.startswith("_") for p in n.split(".")[1:]))]:
    module = importlib.import_module(name)
    {second}
    found[name.removeprefix("halstream.")] = [n for n in dir(module) if not n.startswith("_")]
    for public in getattr(module, "__all__", ()):
        getattr(module, public)
    exec(f"from {{name}} import *")
print(json.dumps(found))
"""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("env", "first", "second"), WAYS.values(), ids=WAYS.keys())
def test_modules_show_no_name_that_the_mirrored_module_lacks(
    child: Child, dialect: str, env: dict[str, str], first: str, second: str
) -> None:
    done = child(PUBLIC.format(dialect=dialect, first=first, second=second), env=env)
    found: dict[str, list[str]] = json.loads(done.stdout or "{}")
    assert found, done.stderr
    for module, names in found.items():
        real = set(REAL[module].split()) if dialect != "acl" else set(public_names(module) or ())
        assert {name for name in set(names) - real if f"{module}.{name}" not in OTHER_BUILDS} == set(), module
        assert names or module in EMPTY, f"{module} shows nothing"


# Real modules of which only private names are mirrored, one that pyACL does not have, and one of other names there.
EMPTY = {"paddle.framework", "paddle.base.framework", "mindspore.common.api", "acl.constants", "acl.mdl"}


def test_hidden_names_of_modules_raise_and_mirrored_ones_work(child: Child) -> None:
    done = child(
        """
import halstream as hs
from halstream.torch import cuda
from halstream.paddle import device
from halstream.acl import constants, rt
assert hasattr(cuda, "Callable") and constants.ACL_DEVICE == 0  # not in strict mode
hs.strict()
for module, name in ((cuda, "Callable"), (device, "convert_to_place"), (constants, "ACL_DEVICE")):
    assert name not in dir(module)
    try:
        getattr(module, name)
    except AttributeError as exc:
        assert name in str(exc) and "strict mode" in str(exc), exc
    else:
        raise SystemExit(f"{module} shows {name}")
cuda.Stream().synchronize()
assert cuda.__name__ == "halstream.torch.cuda" and cuda.__doc__
assert rt.get_device_count()[1] == 0
assert str(device("cpu")) == "cpu"  # a module that can be called
hs.strict(False)
assert hasattr(cuda, "Callable") and constants.ACL_DEVICE == 0
assert str(device("cpu")) == "cpu"
print("done")
"""
    )
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_parameters_that_only_halstream_has_are_hidden(strict: None) -> None:
    del strict
    s = cupy.Stream(non_blocking=True)
    ran: list[int] = []
    for function, parameters in (
        (s.launch_host_func, ["callback", "arg"]),
        (s.synchronize, []),
        (cupy.runtime.launchHostFunc, ["stream", "callback", "arg"]),
        (cuda.Stream().synchronize, []),
    ):
        assert list(inspect.signature(function).parameters) == parameters
    with pytest.raises(TypeError, match="no parameter 'reads' in strict mode"):
        s.launch_host_func(ran.append, 1, reads=[])
    with pytest.raises(TypeError, match="no parameter 'timeout' in strict mode"):
        s.synchronize(timeout=10)
    s.launch_host_func(ran.append, 2)
    s.synchronize()
    hs.strict(False)
    s.launch_host_func(ran.append, 3, reads=[])
    s.synchronize(timeout=10)
    assert ran == [2, 3]
