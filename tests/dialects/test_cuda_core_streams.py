"""cuda.core's streams: how they are made, what they are, and how they order work."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from cuda_help import device
from halstream.cuda import core
from halstream.cuda.core._utils.cuda_utils import CUDAError

pytestmark = pytest.mark.usefixtures("backend")

LIMIT = 10.0


class Foreign:
    """Another library's object with a stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        found: tuple[int, int] = self.stream.__cuda_stream__()
        return found


@pytest.fixture
def dev() -> core.Device:
    return device()


@pytest.mark.row(1)
def test_streams_are_made_by_devices_only() -> None:
    with pytest.raises(RuntimeError, match=r"^Stream objects cannot be instantiated directly\."):
        core.Stream()


@pytest.mark.row(2)
@pytest.mark.row(3)
@pytest.mark.row(38)
def test_a_stream_has_its_options(dev: core.Device) -> None:
    for options in (core.StreamOptions(nonblocking=True, priority=0), {"nonblocking": True}, None):
        stream = dev.create_stream(options=options)
        assert (stream.is_nonblocking, stream.priority) == (True, 0)
        assert int(stream.handle) > 2
    assert not dev.create_stream(options={"nonblocking": False}).is_nonblocking
    with pytest.raises(TypeError, match=r"must be provided as an object of type StreamOptions or as a dict"):
        dev.create_stream(options=5)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'prio'"):
        dev.create_stream(options={"prio": 1})
    with pytest.raises(TypeError, match=r"^Expected int, got str$"):
        core.StreamOptions(priority="high")  # type: ignore[arg-type]


@pytest.mark.row(4)
def test_priorities_out_of_range_are_refused(dev: core.Device) -> None:
    greatest = hs.Device(0).priority_range[1]
    assert dev.create_stream(options={"priority": greatest}).priority == greatest
    for wrong in (1, greatest - 1):
        with pytest.raises(ValueError, match=rf"^priority={wrong} is out of range \[{greatest}, 0\]$"):
            dev.create_stream(options={"priority": wrong})


@pytest.mark.row(5)
@pytest.mark.row(6)
@pytest.mark.row(7)
def test_a_stream_waits_for_events_and_streams(dev: core.Device, hold: Callable[[Any], Any]) -> None:
    first, second, third = (dev.create_stream() for _ in range(3))
    third.sync()
    gate = hold(first)
    event = first.record()
    assert isinstance(event, core.Event)
    second.wait(event)
    third.wait(first)
    after = [second.record(), third.record()]
    assert [one.is_done for one in after] == [False, False]
    gate.open()
    second.sync(timeout=LIMIT)
    third.sync(timeout=LIMIT)
    assert all(one.is_done for one in after)


@pytest.mark.row(8)
@pytest.mark.parametrize("wrong", ["text", 1, None, object()])
def test_what_is_neither_event_nor_stream_is_refused(dev: core.Device, wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^only an Event, Stream, or object supporting __cuda_stream__ can be waited"):
        dev.create_stream().wait(wrong)


@pytest.mark.row(9)
def test_a_stream_has_a_device_and_a_context(dev: core.Device) -> None:
    stream = dev.create_stream()
    assert stream.device is dev
    assert stream.context == dev.context == core.Device(0).context


@pytest.mark.row(10)
@pytest.mark.needs("host")
def test_streams_of_other_objects(dev: core.Device) -> None:
    stream = dev.create_stream()
    for made in (
        dev.create_stream(Foreign(stream)),
        dev.create_stream(stream),
        dev.create_stream(hs.Stream._wrap(stream)),
    ):
        assert isinstance(made, core.Stream) and made == stream and hash(made) == hash(stream)
        assert made.device is dev and made.context == dev.context
        made.close()
        assert made.is_closed and not stream.is_closed
    stream.sync()


def test_objects_without_the_protocol_are_refused(dev: core.Device) -> None:
    class Version:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 1, 2

    class Three:
        def __cuda_stream__(self) -> tuple[int, int, int]:
            return 0, 1, 2

    class Attribute:
        __cuda_stream__ = 5

    with pytest.raises(TypeError, match=r"^<class 'int'> object does not have a '__cuda_stream__' attribute$"):
        dev.create_stream(5)
    with pytest.raises(RuntimeError, match=r"must be 0, got 1$"):
        dev.create_stream(Version())
    with pytest.raises(RuntimeError, match=r"must return a sequence with 2 elements, got 3 elements$"):
        dev.create_stream(Three())
    with (
        pytest.warns(DeprecationWarning, match=r"must be implemented as a method"),
        pytest.raises(RuntimeError, match=r"must return a sequence with 2 elements, got <class 'int'>$"),
    ):
        dev.create_stream(Attribute())
    with pytest.raises(ValueError, match=r"^obj and options cannot be both specified"):
        dev.create_stream(dev.create_stream(), options={})


@pytest.mark.row(11)
def test_streams_by_their_handles(dev: core.Device) -> None:
    assert core.Stream.from_handle(0) == core.LEGACY_DEFAULT_STREAM
    assert core.Stream.from_handle(1) is core.LEGACY_DEFAULT_STREAM
    assert core.Stream.from_handle(2) is core.PER_THREAD_DEFAULT_STREAM
    stream = dev.create_stream()
    same = core.Stream.from_handle(int(stream.handle))
    assert same == stream
    same.close()
    stream.sync()
    with pytest.raises(TypeError, match=r"^an integer is required$"):
        core.Stream.from_handle("1")  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        core.Stream.from_handle(-1)


@pytest.mark.needs("unknown-handles")
def test_a_number_of_no_stream_is_the_drivers_error(dev: core.Device) -> None:
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_INVALID_HANDLE: ") as caught:
        core.Stream.from_handle(987654321)
    assert isinstance(caught.value, hs.InvalidHandleError)


@pytest.mark.row(12)
@pytest.mark.row(17)
@pytest.mark.row(18)
def test_the_default_streams(dev: core.Device) -> None:
    legacy, own = core.LEGACY_DEFAULT_STREAM, core.PER_THREAD_DEFAULT_STREAM
    assert isinstance(legacy, core.Stream) and isinstance(own, core.Stream)
    assert (int(legacy.handle), int(own.handle)) == (1, 2)
    assert legacy != own and hash(legacy) != hash(own)
    assert dev.default_stream == legacy == dev.default_stream
    legacy.sync()
    own.sync()
    with pytest.raises(CUDAError, match=r"nobody closes it"):
        legacy.close()


def test_the_variable_chooses_the_default_stream(dev: core.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, stream in (("1", core.PER_THREAD_DEFAULT_STREAM), ("0", core.LEGACY_DEFAULT_STREAM)):
        monkeypatch.setenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", value)
        assert dev.default_stream is stream


@pytest.mark.row(13)
@pytest.mark.row(14)
@pytest.mark.row(15)
@pytest.mark.row(16)
def test_equality_and_hash(dev: core.Device) -> None:
    first, second = dev.create_stream(), dev.create_stream()
    same = core.Stream.from_handle(int(first.handle))
    assert first == first and first == same and same == first and (first != same) is False
    assert first != second and hash(first) == hash(same) != hash(second)
    for other in ("text", 1, dev, None):
        assert (first == other) is False
    names = {first: "first", second: "second"}
    names[same] = "again"
    assert names[first] == "again" and len(names) == 2 and len({first, same, second}) == 2


@pytest.mark.row(19)
def test_default_streams_are_of_the_current_device() -> None:
    first, second = device(0), device(1)
    try:
        assert core.LEGACY_DEFAULT_STREAM.device is second and core.LEGACY_DEFAULT_STREAM.context == second.context
    finally:
        first.set_current()
    assert core.LEGACY_DEFAULT_STREAM.device is first


@pytest.mark.row(20)
def test_a_stream_waits_for_one_of_another_device(hold: Callable[[Any], Any]) -> None:
    first = device(0)
    mine = first.create_stream()
    theirs = device(1).create_stream()
    try:
        gate = hold(mine)
        theirs.wait(mine)
        event = theirs.record()
        assert not event.is_done
        gate.open()
        event.sync(timeout=LIMIT)
        assert event.device.device_id == 1
    finally:
        first.set_current()


def test_a_closed_stream_is_refused(dev: core.Device) -> None:
    stream, other = dev.create_stream(), dev.create_stream()
    assert not stream.is_closed
    stream.close()
    stream.close()
    assert stream.is_closed and stream.handle == 0 and "closed" in repr(stream)
    uses: list[Callable[[], object]] = [
        stream.sync,
        stream.record,
        stream.create_graph_builder,
        stream.__cuda_stream__,
        lambda: stream.device,
        lambda: stream.priority,
        lambda: stream.wait(other),
        lambda: other.wait(stream),
        lambda: dev.create_stream(stream),
        lambda: dev.allocate(4, stream=stream),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match=r"^Stream has been closed$"):
            use()
    other.sync()


@pytest.mark.parametrize("again", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_is_not_copied(dev: core.Device, again: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"cannot pickle or copy a Stream"):
        again(dev.create_stream())
