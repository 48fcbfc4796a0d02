"""Attributes, weak references, cycles and finalizers of events, whose base class is written in C."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream.cupy import cuda as cupy_cuda
from halstream.torch import cuda

pytestmark = pytest.mark.usefixtures("backend")

LIMIT = 10.0
EVENTS: dict[str, Callable[[], Any]] = {
    "made": hs.Event,
    "recorded": lambda: hs.Stream().record(),
    "torch": lambda: cuda.Stream().record_event(),
    "cupy": cupy_cuda.Event,
}


@pytest.fixture(params=list(EVENTS.values()), ids=list(EVENTS))
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], Any]]:
    gc.collect()
    yield request.param
    gc.collect()


class Thing:
    pass


def test_J1_attributes_of_an_event_end_with_it(make: Callable[[], Any]) -> None:
    for _ in range(3):
        event = make()
        assert not hasattr(event, "thing")
        assert "thing" not in vars(event)
        event.thing = Thing()
        assert vars(event)["thing"] is event.thing
        gone = weakref.ref(event.thing)
        hs.synchronize(0, timeout=LIMIT)
        assert event.query() is True
        del event
        assert gone() is None


def test_J1_weak_references_to_an_event_end_with_it(make: Callable[[], Any]) -> None:
    for _ in range(3):
        event = make()
        called: list[Any] = []
        weak = weakref.ref(event, called.append)
        assert weak() is event
        del event
        assert weak() is None
        assert called == [weak]


def test_J1_an_event_in_a_cycle_is_collected(make: Callable[[], Any]) -> None:
    event = make()
    event.itself, event.thing = event, Thing()
    gone = weakref.ref(event.thing)
    del event
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_J1_every_event_is_finalized_where_the_class_has_a_finalizer(monkeypatch: pytest.MonkeyPatch) -> None:
    s, ended = hs.Stream(), []
    s.record()
    monkeypatch.setattr(hs.Event, "__del__", lambda self: ended.append(self.query()), raising=False)
    for n in range(1, 4):
        s.record()
        assert len(ended) == n
    kept: list[Any] = []
    monkeypatch.setattr(hs.Event, "__del__", lambda self: kept.append(self))
    s.record()
    assert len(kept) == 1
    s.synchronize(timeout=LIMIT)
    assert kept[0].query() is True  # it lives on
    monkeypatch.undo()
    event = kept.pop()
    event.name = "still an event"
    assert event.query() is True


def test_J1_events_of_two_classes_in_turn() -> None:
    s, t = hs.Stream(), cuda.Stream()
    for _ in range(100):
        e, f = s.record(), t.record_event()
        assert type(e) is hs.Event
        assert type(f) is cuda.Event
        hs.synchronize(0, timeout=LIMIT)
        assert e.query() is f.query() is True
        s.wait_event(f)
        t.wait_event(e)
