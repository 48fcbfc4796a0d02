"""Functions that do not end, and the streams that go on without them."""

from __future__ import annotations

import functools
import threading
import weakref

import halstream as hs
import pytest
from endings import set_soon
from halstream import _native

pytestmark = pytest.mark.usefixtures("backend")

LIMIT = 10.0


class Stuck:
    """A function that does not end until it is released."""

    def __init__(self) -> None:
        self.begun, self.release, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        self.release.wait(LIMIT)
        self.ended.set()


def test_H7_functions_of_one_call_with_an_abandoned_one_run() -> None:
    s, ran, stuck = hs.Stream(), list[int](), Stuck()
    rest = functools.partial(ran.append, 1)
    s.call_many([stuck, rest])
    released = threading.Event()
    watch = weakref.finalize(rest, released.set)
    del rest
    assert stuck.begun.wait(LIMIT)
    _native.host_abandon()
    with pytest.raises(hs.HalError, match="was abandoned"):
        s.synchronize(timeout=LIMIT)
    assert ran == [1]
    assert set_soon(released, LIMIT) and not watch.alive, "its function was not let go"
    stuck.release.set()


def test_H7_the_stream_of_an_abandoned_function_goes_on() -> None:
    s, ran, stuck = hs.Stream(), list[int](), Stuck()
    s.call(stuck)
    s.nop()
    s.call(ran.append, 1)
    assert stuck.begun.wait(LIMIT)
    assert _native.host_abandon() == 1
    with pytest.raises(hs.HalError, match="did not end, and was abandoned"):
        s.synchronize(timeout=LIMIT)
    assert ran == [1] and not stuck.ended.is_set()
    assert _native.host_abandon() == 0
    stuck.release.set()
    assert stuck.ended.wait(LIMIT)
    s.call(ran.append, 2)
    s.synchronize(timeout=LIMIT)
    assert ran == [1, 2]
