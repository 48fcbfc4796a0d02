"""Closing, collecting, and what stays alive."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_L1_closing_twice_does_nothing() -> None:
    s, e = hs.Stream(), hs.Event(device=0)
    for thing in (s, e):
        assert not thing.closed
        thing.close()
        thing.close()
        assert thing.closed
    gate = hs.testing.Gate(hs.Stream())
    gate.open()
    gate.open()
    assert gate.opened


def test_L1_default_streams_cannot_be_closed() -> None:
    default = hs.Device(0).default_stream
    with pytest.raises(hs.InvalidValueError):
        default.close()
    default.nop()
    default.synchronize(timeout=LIMIT)


def test_L2_closing_a_stream_lets_its_work_finish(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    e = a.record()
    b.wait(a)
    b.nop()
    a.close()
    assert not e.query()
    assert not b.query()
    gate.open()
    e.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)


def test_L2_closing_an_event_keeps_the_waits_for_it(hold: Hold, settle: Callable[[], None]) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    e = a.record()
    b.wait(e)
    b.nop()
    e.close()
    settle()
    assert not b.query()
    gate.open()
    b.synchronize(timeout=LIMIT)


def test_L2_collecting_a_stream_lets_its_work_finish() -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hs.testing.Gate(a)
    e = a.record()
    b.wait(a)
    del a
    gc.collect()
    hs.Event(device=0)  # an ordinary call, which closes what was collected
    assert not e.query()
    gate.open()
    e.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)


def test_L2_a_gate_that_is_collected_opens() -> None:
    s = hs.Stream()
    gate = hs.testing.Gate(s)
    assert not s.query()
    del gate
    gc.collect()
    hs.Stream()
    hs._core.drain()
    s.synchronize(timeout=LIMIT)


STREAM_CALLS: dict[str, Callable[[hs.Stream], object]] = {
    "record": lambda s: s.record(),
    "record an event": lambda s: s.record(hs.Event()),
    "wait for an event": lambda s: s.wait(hs.Event(device=0)),
    "wait for a stream": lambda s: s.wait(hs.Stream()),
    "be waited for": lambda s: hs.Stream().wait(s),
    "query": lambda s: s.query(),
    "synchronize": lambda s: s.synchronize(),
    "synchronize with a limit": lambda s: s.synchronize(timeout=1.0),
    "call": lambda s: s.call(print),
    "call_checked": lambda s: s.call_checked(print),
    "nop": lambda s: s.nop(),
    "delay": lambda s: s.delay(0.001),
    "gate": lambda s: hs.testing.Gate(s),
    "event.record": lambda s: hs.Event().record(s),
    "event.wait": lambda s: hs.Event(device=0).wait(s),
}
EVENT_CALLS: dict[str, Callable[[hs.Event], object]] = {
    "record": lambda e: e.record(),
    "wait": lambda e: e.wait(),
    "query": lambda e: e.query(),
    "synchronize": lambda e: e.synchronize(),
    "be recorded": lambda e: hs.Stream().record(e),
    "be waited for": lambda e: hs.Stream().wait(e),
    "elapsed": lambda e: e.elapsed(hs.Event(timing=True)),
    "end": lambda e: hs.Event(timing=True).elapsed(e),
}


@pytest.mark.parametrize("name", STREAM_CALLS)
def test_L3_a_closed_stream_refuses(name: str) -> None:
    s = hs.Stream()
    s.close()
    with pytest.raises(hs.ClosedError, match="closed"):
        STREAM_CALLS[name](s)


@pytest.mark.parametrize("name", EVENT_CALLS)
def test_L3_a_closed_event_refuses(name: str) -> None:
    e = hs.Event(device=0, timing=True)
    e.close()
    with pytest.raises(hs.ClosedError, match="closed"):
        EVENT_CALLS[name](e)


def test_L4_an_event_outlives_its_stream(hold: Hold) -> None:
    s = hs.Stream()
    start, end = hs.Event(timing=True), hs.Event(timing=True)
    s.record(start)
    s.delay(0.002)
    s.record(end)
    del s
    gc.collect()
    hs.Stream()
    end.synchronize(timeout=LIMIT)
    assert start.elapsed(end) >= 1.9


def test_L4_the_current_stream_is_kept_alive() -> None:
    s = hs.Stream()
    ident = s.index
    hs.use(s)
    del s
    gc.collect()
    hs.Stream()
    current = hs.current_stream()
    assert current.index == ident
    current.nop()
    current.synchronize(timeout=LIMIT)


def test_L5_nothing_is_left_after_a_thousand_rounds() -> None:
    live = hs._native.live
    hs._core.drain()
    before = live()
    for _ in range(1000):
        a, b = hs.Stream(), hs.Stream()
        e = a.record()
        b.wait(e)
        b.call(int)
        b.synchronize(timeout=LIMIT)
    del a, b, e
    gc.collect()
    hs._core.drain()
    # The last objects end with their last operation, on another thread.
    for _ in range(1000):
        if live() <= before:
            break
        hs.Device(0).synchronize(timeout=LIMIT)
    assert live() <= before


def test_L6_a_runtime_with_work_is_not_closed(child: Callable[..., Any]) -> None:
    # The streams are closed, so only their work keeps the runtime.
    done = child(
        """
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        s.delay(0.01)
        s.close()
        try:
            hs.use_backend("host")
        except hs.NotReadyError as exc:
            assert "pending" in str(exc)
        else:
            raise SystemExit("accepted")
        gate.open()
        hs.synchronize(0, timeout=10)
        assert hs.use_backend("host") == "host"
        """
    )
    assert done.returncode == 0, done.stderr


def test_L5_hammer() -> None:
    # Eight threads make, record, wait and close without any order among them.
    errors: list[BaseException] = []
    shared = [hs.Stream(non_blocking=True) for _ in range(4)]
    events = [hs.Event(device=0) for _ in range(4)]

    def work(seed: int) -> None:
        try:
            for i in range(200):
                s = shared[(seed + i) % 4]
                e = events[(seed * i) % 4]
                own = hs.Stream(non_blocking=bool(i % 2))
                s.record(e)
                own.wait(e)
                own.call(int)
                s.wait(own)
                if i % 10 == 0:
                    own.synchronize(timeout=LIMIT)
                    e.query()
                own.close()
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    for s in shared:
        s.synchronize(timeout=LIMIT)
    for e in events:
        e.synchronize(timeout=LIMIT)
