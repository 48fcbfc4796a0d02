"""cuda.core's events: how they are made, waiting for them, and the time between two."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from cuda_help import device
from halstream.cuda import core

pytestmark = pytest.mark.usefixtures("backend")

LIMIT = 10.0
TIMED = core.EventOptions(timing_enabled=True)


@pytest.fixture
def dev() -> core.Device:
    return device()


@pytest.mark.row(21)
def test_events_are_made_by_streams_and_devices_only() -> None:
    with pytest.raises(RuntimeError, match=r"^Event objects cannot be instantiated directly\."):
        core.Event()


@pytest.mark.row(22)
def test_the_time_between_two_events(dev: core.Device) -> None:
    stream = dev.create_stream()
    start = stream.record(options=TIMED)
    hs.Stream.delay(stream, 0.02)
    end = stream.record(options={"timing_enabled": True})
    end.sync(timeout=LIMIT)
    elapsed = end - start
    assert isinstance(elapsed, float) and elapsed >= 19.9
    assert start - end == -elapsed


@pytest.mark.row(23)
@pytest.mark.row(26)
def test_an_event_has_its_options(dev: core.Device) -> None:
    for timing in (False, True):
        for blocking in (False, True):
            event = dev.create_event(core.EventOptions(timing_enabled=timing, blocking_sync=blocking))
            assert (event.is_timing_enabled, event.is_blocking_sync) == (timing, blocking)
            assert event.is_ipc_enabled is False
    with pytest.raises(TypeError, match=r"^Expected bool, got int$"):
        core.EventOptions(timing_enabled=1)  # type: ignore[arg-type]


@pytest.mark.row(24)
@pytest.mark.row(25)
def test_an_event_is_done_with_the_work_before_it(dev: core.Device, hold: Callable[[Any], Any]) -> None:
    stream = dev.create_stream()
    gate = hold(stream)
    event = stream.record()
    assert event.is_done is False
    gate.open()
    event.sync(timeout=LIMIT)
    assert event.is_done is True
    assert stream.record(event) is event
    with pytest.raises(TypeError, match=r"^Event expected, got int$"):
        stream.record(5)  # type: ignore[arg-type]


@pytest.mark.row(27)
def test_no_time_without_timing(dev: core.Device) -> None:
    stream = dev.create_stream()
    plain, timed = stream.record(), stream.record(options=TIMED)
    stream.sync()
    for end, start in ((plain, timed), (timed, plain), (plain, plain)):
        with pytest.raises(
            RuntimeError, match=r"^Both Events must be created with timing enabled in order to subtract"
        ):
            end - start


@pytest.mark.row(28)
def test_no_time_without_records(dev: core.Device) -> None:
    stream = dev.create_stream()
    recorded, never = stream.record(options=TIMED), dev.create_event(TIMED)
    stream.sync()
    for end, start in ((recorded, never), (never, recorded), (never, never)):
        with pytest.raises(RuntimeError, match=r"^Both Events must be recorded before they can be subtracted"):
            end - start


@pytest.mark.row(29)
def test_no_time_before_the_work_is_done(dev: core.Device, hold: Callable[[Any], Any]) -> None:
    stream = dev.create_stream()
    start = stream.record(options=TIMED)
    gate = hold(stream)
    end = stream.record(options=TIMED)
    with pytest.raises(RuntimeError, match=r"^One or both events have not completed; use Event.sync()"):
        end - start
    gate.open()
    end.sync(timeout=LIMIT)
    assert end - start >= 0


@pytest.mark.row(31)
def test_an_event_has_a_device_and_a_context(dev: core.Device) -> None:
    event = dev.create_stream().record()
    assert event.device is dev and event.context == dev.context


@pytest.mark.row(32)
def test_events_are_equal_to_themselves_only(dev: core.Device) -> None:
    stream = dev.create_stream()
    first, second = stream.record(), stream.record()
    assert first == first and first != second and hash(first) != hash(second)
    assert len({first, second}) == 2 and {first: 1}[first] == 1
    for other in ("text", 1, stream, None):
        assert (first == other) is False
    with pytest.raises(TypeError, match=r"unsupported operand"):
        3 - first
    with pytest.raises(TypeError, match=r"^Argument 'other' has incorrect type"):
        first - 3


@pytest.mark.row(33)
@pytest.mark.row(35)
def test_events_of_other_processes_are_refused(dev: core.Device) -> None:
    with pytest.raises(TypeError, match=r"^IPC-enabled events must be bound; use Stream\.record for creation\.$"):
        dev.create_event({"ipc_enabled": True})
    with pytest.raises(TypeError, match=r"^IPC-enabled events cannot use timing\.$"):
        dev.create_stream().record(options={"ipc_enabled": True, "timing_enabled": True})
    with pytest.raises(hs.NotSupportedError, match=r"events of other processes are not built yet"):
        dev.create_stream().record(options={"ipc_enabled": True})
    event = dev.create_event()
    assert not hasattr(event, "ipc_descriptor")
    with pytest.raises(hs.NotSupportedError, match=r"(?m)^cuda\.core\.Event\.from_ipc_descriptor is not built yet$"):
        core.Event.from_ipc_descriptor(b"")


def test_a_closed_event_is_refused(dev: core.Device) -> None:
    stream = dev.create_stream()
    event, other = stream.record(), stream.record()
    event.close()
    event.close()
    assert event.is_closed and event.handle == 0
    uses: list[Callable[[], object]] = [
        event.sync,
        lambda: event.is_done,
        lambda: event.device,
        lambda: stream.record(event),
        lambda: stream.wait(event),
        lambda: other - event,
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match=r"^Event has been closed$"):
            use()
    stream.sync()


def test_a_wait_keeps_its_point_when_the_event_is_closed(dev: core.Device, hold: Callable[[Any], Any]) -> None:
    first, second = dev.create_stream(), dev.create_stream()
    gate = hold(first)
    event = first.record()
    second.wait(event)
    event.close()
    after = second.record()
    assert not after.is_done
    gate.open()
    after.sync(timeout=LIMIT)


def test_an_event_is_not_pickled(dev: core.Device) -> None:
    with pytest.raises(TypeError, match=r"cannot pickle or copy a Event"):
        pickle.dumps(dev.create_event())
