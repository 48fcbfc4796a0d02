"""Methods in C belong to each class of the package; the memory of events that ended is used again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream.cupy import cuda as cupy_cuda
from halstream.mindspore import runtime
from halstream.paddle import device
from halstream.torch import cuda

pytestmark = pytest.mark.usefixtures("backend")

METHOD: Any = type(str.lower)
LIMIT = 10.0


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (hs.Stream, ("record", "wait_event", "wait_stream", "query", "synchronize", "nop", "__enter__")),
        (cuda.Stream, ("record_event", "wait_event", "wait_stream", "query", "synchronize", "nop")),
        (cuda.Event, ("record", "wait", "query", "synchronize")),
        (runtime.Stream, ("record_event", "query", "synchronize")),
        (device.Event, ("query", "synchronize")),
        (cupy_cuda.Stream, ("wait_event", "synchronize")),
    ],
)
def test_J2_a_class_of_the_package_has_its_methods_in_c_itself(cls: type, names: tuple[str, ...]) -> None:
    for name in names:
        method: Any = getattr(cls, name)
        assert isinstance(method, METHOD), name
        assert method.__objclass__ is cls, name


def test_J2_a_method_that_a_class_overrides_stays_overridden() -> None:
    assert cupy_cuda.Stream.__enter__.__qualname__ == "_BaseStream.__enter__"
    assert not isinstance(cupy_cuda.Stream.__enter__, METHOD)


def test_J2_a_subclass_of_a_program_sees_methods_that_are_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(cuda.Stream):
        pass

    class Loud:
        def query(self) -> str:
            return "loud"

    class Both(Loud, cuda.Stream):  # type: ignore[misc]
        pass

    s: Any = Mine()
    assert s.query() is True
    monkeypatch.setattr(cuda.Stream, "query", lambda self: "exchanged")
    assert s.query() == "exchanged"
    assert Both().query() == "loud"
    monkeypatch.undo()
    assert s.query() is True
    assert cuda.Stream().query() is True


def test_J2_a_method_in_c_refuses_an_object_of_another_class() -> None:
    with pytest.raises(TypeError):
        cuda.Stream.query(hs.Stream())
    assert hs.Stream.query(cuda.Stream()) is True


EVENTS: dict[str, Callable[[], Any]] = {
    "made": hs.Event,
    "recorded": lambda: hs.Stream().record(),
    "torch": lambda: cuda.Stream().record_event(),
    "cupy": cupy_cuda.Event,
}


@pytest.fixture(params=list(EVENTS.values()), ids=list(EVENTS))
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], Any]]:
    request.param()  # the first one of a class is made by Python's code
    gc.collect()
    yield request.param
    gc.collect()


class Thing:
    pass


def test_J1_attributes_of_an_event_end_with_it(make: Callable[[], Any]) -> None:
    for _ in range(3):  # in the same memory, if it is used again
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
