"""What every class must do as a Python object: eq, hash, repr, weakref, with, no copies."""

from __future__ import annotations

import copy
import gc
import importlib
import os
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream._core._context import Context, ReportQueue
from halstream._memory import DeviceMemory, PinnedMemory, PooledMemory

LIMIT = 10.0

pytestmark = pytest.mark.usefixtures("backend")


def of(module: str, name: str, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    """Return a maker of a dialect's objects; the dialect is imported when it is called."""
    return lambda: getattr(importlib.import_module(f"halstream.{module}"), name)(*args, **kwargs)


def deprecated(make: Callable[[], Any]) -> Any:
    """Make what the package itself warns of."""
    with pytest.warns(DeprecationWarning):
        return make()


#: A custom device that paddle's dialect knows; the host's is registered.
CUSTOM = "custom_cpu" if os.environ.get("HALSTREAM_BACKEND") == "host" else "npu"

STREAMS: dict[str, Callable[[], Any]] = {
    "core": hs.Stream,
    "torch.cuda.Stream": of("torch.cuda", "Stream"),
    "torch.Stream": of("torch", "Stream", "cuda"),
    "torch.cuda.ExternalStream": lambda: of("torch.cuda", "ExternalStream", KEEP[-1].handle)(),
    "paddle.device.Stream": of("paddle.device", "Stream", CUSTOM),
    "mindspore.hal.Stream": of("mindspore.hal", "Stream"),
    "mindspore.runtime.Stream": of("mindspore.runtime", "Stream"),
    "cupy.cuda.Stream": of("cupy.cuda", "Stream"),
    "cupy.cuda.ExternalStream": lambda: deprecated(of("cupy.cuda", "ExternalStream", KEEP[-1].handle)),
}
EVENTS: dict[str, Callable[[], Any]] = {
    "core": hs.Event,
    "core of a device": lambda: hs.Event(device=0),
    "torch.cuda.Event": of("torch.cuda", "Event"),
    "torch.Event": of("torch", "Event", "cuda"),
    "paddle.device.Event": of("paddle.device", "Event", CUSTOM),
    "mindspore.hal.Event": of("mindspore.hal", "Event"),
    "mindspore.runtime.Event": of("mindspore.runtime", "Event"),
    "cupy.cuda.Event": of("cupy.cuda", "Event"),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "context": lambda: Context(0),
    "report queue": ReportQueue,
    "gate": lambda: hs.testing.Gate(hs.Stream()),
}
ALL = {
    **{f"stream {name}": make for name, make in STREAMS.items()},
    **{f"event {name}": make for name, make in EVENTS.items()},
    **OTHERS,
}
# Streams that an ExternalStream of a test names; a new one for each.
KEEP: list[hs.Stream] = []


@pytest.fixture(autouse=True)
def keep() -> None:
    """Give external streams a stream to name."""
    KEEP[:] = [hs.Stream()]


def made(table: dict[str, Callable[[], Any]]) -> Any:
    return pytest.mark.parametrize("make", [pytest.param(m, id=n) for n, m in table.items()])


def another(make: Callable[[], Any]) -> Any:
    """Return an object of the same class that names something else."""
    KEEP.append(hs.Stream())
    return make()


@made(ALL)
def test_equal_to_itself_and_to_nothing_else(make: Callable[[], Any]) -> None:
    a = make()
    b = another(make)
    assert a == a
    assert not a != a  # noqa: SIM202
    assert a != b
    for foreign in (None, 0, 1.5, "text", object(), [], {}):
        if type(a).__module__.startswith("halstream.mindspore") and isinstance(a, hs.Stream):
            # mindspore's streams refuse to be compared with anything else.
            with pytest.raises(TypeError, match="should be Stream"):
                assert a == foreign
            continue
        assert a != foreign
        assert not a == foreign  # noqa: SIM201


@made(ALL)
def test_hash_is_stable_and_finds_the_object(make: Callable[[], Any]) -> None:
    a, b = make(), another(make)
    assert hash(a) == hash(a)
    assert {a: 1, b: 2}[a] == 1
    assert len({a, b, a}) == 2


@made(STREAMS)
def test_two_names_of_one_stream_have_one_hash_where_they_are_equal(make: Callable[[], Any]) -> None:
    a = make()
    b = type(a)._wrap(hs.Stream.from_handle(a.handle))
    assert b._id == a._id
    if a == b:
        assert hash(a) == hash(b)
        assert len({a, b}) == 1


@made(ALL)
def test_repr_is_one_line_and_never_fails(make: Callable[[], Any]) -> None:
    a = make()
    # torch.cuda.ExternalStream has the repr of its base.
    names = [cls.__name__ for cls in type(a).__mro__[:-1]]
    assert "\n" not in repr(a)
    assert any(name in repr(a) for name in names)
    close = getattr(a, "close", None)
    if close is not None:
        try:
            close()
        except hs.HalError:
            return  # an external stream is its maker's to close
        assert any(name in repr(a) for name in names)


@made(ALL)
def test_weak_references_end_with_the_object(make: Callable[[], Any]) -> None:
    a = make()
    reference = weakref.ref(a)
    assert reference() is a
    del a
    gc.collect()
    assert reference() is None


#: What owns memory, or refers to memory that another object owns.
MEMORY: dict[str, Callable[[], Any]] = {
    "device memory": lambda: DeviceMemory(64),
    "pooled memory": lambda: PooledMemory(64, hs.Stream()),
    "pinned memory": lambda: PinnedMemory(64),
    "borrowed memory": lambda: hs.from_dlpack(hs.empty(8))._memory,
    "cupy.cuda.Memory": of("cupy.cuda", "Memory", 64),
    "cupy.cuda.MemoryAsync": of("cupy.cuda", "MemoryAsync", 64, None),
    "cupy.cuda.PinnedMemory": of("cupy.cuda", "PinnedMemory", 64),
    "cupy.cuda.PinnedMemoryPointer": of("cupy.cuda", "alloc_pinned_memory", 64),
}


@made({**ALL, **MEMORY})
@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_copies_are_refused_with_a_reason(make: Callable[[], Any], copying: Callable[[Any], Any]) -> None:
    a = make()
    with pytest.raises(TypeError, match=type(a).__name__):
        copying(a)


@made(STREAMS)
def test_the_core_context_makes_a_stream_current(make: Callable[[], Any]) -> None:
    s = make()
    before = hs.current_stream()
    with s:
        assert hs.current_stream() is s
        with pytest.raises(ZeroDivisionError), hs.Stream():
            1 / 0  # noqa: B018
        assert hs.current_stream() is s
    assert hs.current_stream() == before
    with s:  # again: a stream is no one-shot context
        assert hs.current_stream() is s


@made(STREAMS)
def test_dialect_streams_are_core_streams(make: Callable[[], Any]) -> None:
    s = make()
    assert isinstance(s, hs.Stream)
    ran: list[int] = []
    with hs.testing.Gate(s):
        s.call(ran.append, 1)
        e = hs.Stream.record(s)
        assert not e.query() if callable(getattr(e, "query", None)) else True
    hs.Stream.synchronize(s, timeout=LIMIT)
    assert ran == [1]


@made(EVENTS)
def test_dialect_events_are_core_events(make: Callable[[], Any]) -> None:
    e, s = make(), hs.Stream()
    assert isinstance(e, hs.Event)
    with hs.testing.Gate(s):
        s.record(e)
        assert not hs.Event.query(e)
    hs.Event.synchronize(e, timeout=LIMIT)
    assert hs.Event.query(e)


@made({**STREAMS, **EVENTS})
def test_classes_can_be_subclassed(make: Callable[[], Any]) -> None:
    cls = type(make())

    class Mine(cls):  # type: ignore[misc, valid-type]
        extra = 1

    assert Mine.extra == 1 and issubclass(Mine, cls)


@made(STREAMS)
def test_ids_cannot_be_changed_by_accident(make: Callable[[], Any]) -> None:
    s = make()
    for name in ("handle", "index", "non_blocking", "failures", "closed"):
        with pytest.raises(AttributeError):
            setattr(s, name, 5)


def test_devices_are_values() -> None:
    assert hs.Device(1) == hs.Device(f"{hs.backend()}:1") == hs.Device(hs.Device(1))
    assert hash(hs.Device(1)) == hash(hs.Device("cuda:1"))
    assert hs.Device(0) != hs.Device(1)
    assert hs.Device(0) != 0
    assert repr(hs.Device(1)) == f"<halstream.Device {hs.backend()}:1>"
    assert int(hs.Device(1).__index__()) == 1
    assert copy.copy(hs.Device(1)) == pickle.loads(pickle.dumps(hs.Device(1))) == hs.Device(1)


ERRORS = [getattr(hs, name) for name in hs._errors.__all__]


@pytest.mark.parametrize("cls", ERRORS, ids=lambda cls: cls.__name__)
def test_errors_are_one_tree_and_can_be_pickled(cls: type[hs.HalError]) -> None:
    assert issubclass(cls, hs.HalError) and issubclass(cls, RuntimeError)
    error = cls("what happened", code=7, operation="record")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == "what happened"
    assert (again.code, again.operation) == (7, "record")
