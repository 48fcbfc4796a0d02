"""Equality and hash across the core and all dialects: symmetric, and equal objects hash alike."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

pytestmark = pytest.mark.usefixtures("backend")


def cls(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"halstream.{module}"), name)


#: Every class of streams, by name.
CLASSES = {
    "core": ("", "Stream"),
    "torch": ("torch", "Stream"),
    "torch.cuda": ("torch.cuda", "Stream"),
    "torch.cuda external": ("torch.cuda", "ExternalStream"),
    "paddle": ("paddle.device", "Stream"),
    "paddle.base CUDA": ("paddle.base.core", "CUDAStream"),
    "paddle.base custom": ("paddle.base.core", "CustomDeviceStream"),
    "mindspore": ("mindspore.hal", "Stream"),
    "mindspore.runtime": ("mindspore.runtime", "Stream"),
    "cupy": ("cupy.cuda", "Stream"),
    "cupy external": ("cupy.cuda", "ExternalStream"),
    "cuda.core": ("cuda.core", "Stream"),
}
PAIRS = list(itertools.combinations_with_replacement(CLASSES, 2))


def stream_class(name: str) -> Any:
    module, attribute = CLASSES[name]
    return cls(module, attribute) if module else hs.Stream


def legacy(name: str) -> Any:
    """Return the class's own object for the legacy default stream of device 0."""
    if name == "cuda.core":
        cls(name, "Device")(0).set_current()
        return cls(name, "LEGACY_DEFAULT_STREAM")
    return cls("cupy.cuda", "Stream").null if name == "cupy" else stream_class(name)._default(0)


def per_thread(name: str) -> Any:
    """Return the class's own object for this thread's default stream."""
    if name == "cuda.core":
        cls(name, "Device")(0).set_current()
        return cls(name, "PER_THREAD_DEFAULT_STREAM")
    return cls("cupy.cuda", "Stream").ptds if name == "cupy" else stream_class(name)._default(0, True)


def by_handle(name: str, handle: int) -> Any:
    if name == "cuda.core":
        return stream_class(name).from_handle(handle)
    return stream_class(name).from_handle(handle, 0)


KINDS: dict[str, Callable[[str, hs.Stream], Any]] = {
    "stream": lambda name, s: stream_class(name)._wrap(s),
    "handle": lambda name, s: by_handle(name, s.handle),
    "legacy": lambda name, s: legacy(name),
    "per thread": lambda name, s: per_thread(name),
    "closed": lambda name, s: stream_class(name)._wrap(s),
}


def check(a: Any, b: Any) -> bool:
    """Check the rules for one pair; return whether they are equal."""
    equal = a == b
    assert equal in (True, False)
    assert (b == a) is equal
    assert (a != b) is (not equal) and (b != a) is (not equal)
    if equal:
        assert hash(a) == hash(b)
        assert len({a, b}) == 1
    return bool(equal)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_equality_is_symmetric_and_equal_streams_hash_alike(kind: str, first: str, second: str) -> None:
    s = hs.Stream(0)
    a, b = KINDS[kind](first, s), KINDS[kind](second, s)
    if kind == "closed":
        hash(a)
        hs.Stream.close(s)
    assert check(a, a) and check(b, b)
    equal = check(a, b)
    if (
        "torch" in (first, second)
        and first != second
        and {first, second} <= {"torch", "torch.cuda", "torch.cuda external"}
    ):
        assert not equal  # torch's own rule: a torch.Stream is no torch.cuda.Stream
    elif first == second == "paddle":
        assert equal is (a is b)  # paddle's own rule: two wrappers are two
    else:
        assert equal


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_objects_of_different_streams_are_not_equal(first: str, second: str) -> None:
    one, two = hs.Stream(0), hs.Stream(0)
    a, b = stream_class(first)._wrap(one), stream_class(second)._wrap(two)
    assert not check(a, b)
    assert not check(legacy(first), b)
    assert not check(legacy(first), per_thread(second))


@pytest.mark.parametrize("name", CLASSES)
def test_only_mindspore_refuses_what_is_no_stream(name: str) -> None:
    s = stream_class(name)._wrap(hs.Stream(0))
    for other in (None, 0, "text", object(), hs.Event(), hs.Device(0)):
        if name.startswith("mindspore"):
            with pytest.raises(TypeError, match="should be Stream"):
                assert s == other
            with pytest.raises(TypeError, match="should be Stream"):
                assert other == s
        else:
            assert not check(s, other)


def test_a_handle_that_names_no_stream_equals_nothing_else() -> None:
    """cupy accepts any number as a handle; comparing it must not fail."""
    with pytest.warns(DeprecationWarning):
        unknown = cls("cupy.cuda", "ExternalStream")(987654321)
    assert unknown == unknown
    for name in CLASSES:
        if not name.startswith("cupy"):
            assert not check(unknown, stream_class(name)._wrap(hs.Stream(0)))


EVENTS = {
    "core": ("", "Event"),
    "torch": ("torch", "Event"),
    "torch.cuda": ("torch.cuda", "Event"),
    "paddle": ("paddle.device", "Event"),
    "mindspore": ("mindspore.hal", "Event"),
    "cupy": ("cupy.cuda", "Event"),
    "cuda.core": ("cuda.core", "Event"),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(EVENTS, EVENTS)))
def test_events_are_equal_to_themselves_only(first: str, second: str) -> None:
    def make(name: str) -> Any:
        module, attribute = EVENTS[name]
        if name == "paddle":
            return cls(module, attribute)("custom_cpu" if hs.backend() == "host" else "npu")
        if name == "cuda.core":
            cls(module, "Device")(0).set_current()
            return cls(module, "Device")(0).create_event()
        return cls(module, attribute)() if module else hs.Event()

    a, b = make(first), make(second)
    assert check(a, a) and check(b, b)
    assert not check(a, b)
