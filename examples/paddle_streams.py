"""Streams and events as paddle.device has them, every call proved by what it does.

Work is stood in for by functions on streams; gates hold a stream where the
program has to look at it while something is pending.
"""

from __future__ import annotations

from _proof import Proof
from halstream import paddle
from halstream.testing import Gate

prove = Proof()


def making_streams(kind: str) -> None:
    place = paddle.set_device(kind)
    prove(
        "without a device the stream is on the expected place",
        paddle.device.Stream().device == place,
    )
    prove("a device type will do", paddle.device.Stream(kind).device == place)
    prove("so will a type and a number", paddle.device.Stream(f"{kind}:0").device == place)
    prove("and a place", paddle.device.Stream(place).device == place)
    prove(
        "a GPU's place is a place, too",
        isinstance(paddle.device.Stream(paddle.CUDAPlace(0)), paddle.device.Stream),
    )


def priorities() -> None:
    high, normal = paddle.device.Stream(priority=1), paddle.device.Stream(priority=2)
    prove.order("priority 1 goes before priority 2", [1, 0], normal, high)
    unsaid = paddle.device.Stream(priority=None)
    prove.order("no priority is below 1", [1, 0], unsaid, high)
    prove.order("for it means 2", [0, 1], unsaid, normal)
    prove.order("in whichever order they come", [0, 1], normal, unsaid)


def blocking() -> None:
    free, out = paddle.device.Stream(blocking=False), []
    gate = Gate(free)
    free.call(out.append, "later")
    prove("a stream gives the host its time back at once", not out and not free.query())
    gate.open()
    free.synchronize()
    strict, other = paddle.device.Stream(blocking=True), paddle.device.Stream()
    held = Gate(other)
    event = other.record_event()
    prove.blocks(
        "a blocking one returns from a call when that is done",
        lambda: strict.wait_event(event),
        lambda: not event.query(),
        held.open,
    )
    strict.call(out.append, "now")
    prove("so that nothing is ever pending on it", out[1:] == ["now"] and strict.query() is True)


def record_event() -> None:
    s = paddle.device.Stream()
    gate = Gate(s)
    fresh = s.record_event()
    prove("record_event makes an event", isinstance(fresh, paddle.device.Event))
    mine = paddle.device.Event()
    prove("or takes one, and returns it", s.record_event(mine) is mine)
    prove("it is pending while the work before it is", not mine.query() and not fresh.query())
    late = Gate(s)
    gate.open()
    mine.synchronize()
    prove("and done with it, whatever comes after", mine.query() and fresh.query())
    prove("which the stream itself is not", s.query() is False)
    late.open()


def wait_event() -> None:
    s1, s2, out = paddle.device.Stream(), paddle.device.Stream(), []
    e = paddle.device.Event()
    gate = Gate(s1)
    s1.call(out.append, "marked")
    e.record(s1)
    s2.call(out.append, "before")
    before = s2.record_event()
    s2.wait_event(e)
    s2.call(out.append, "after")
    before.synchronize()
    prove("what was submitted before the wait runs", out == ["before"])
    prove("what is submitted after it waits for the event's work", s2.query() is False)
    gate.open()
    s2.synchronize()
    prove("and then runs", out == ["before", "marked", "after"])


def wait_stream() -> None:
    s1, s2, out = paddle.device.Stream(), paddle.device.Stream(), []
    gate = Gate(s2)
    s2.call(out.append, 2)
    s1.wait_stream(s2)
    s1.call(out.append, 1)
    prove("a stream keeps behind the one it waits for", s1.query() is False and not out)
    gate.open()
    s1.synchronize()
    prove("and goes on when that is done", out == [2, 1] and s2.query())


def query_and_synchronize() -> None:
    s = paddle.device.Stream()
    gate = Gate(s)
    prove("query says False while operations are pending", s.query() is False)
    prove.blocks(
        "synchronize waits for all of the stream's tasks",
        s.synchronize,
        lambda: not s.query(),
        gate.open,
    )
    prove("query says True when all are done", s.query() is True)


if __name__ == "__main__":
    # The host backend is a custom device to paddle; a GPU is none.
    kinds = [*paddle.device.get_all_custom_device_type(), "gpu"]
    making_streams(kinds[0])
    priorities()
    blocking()
    record_event()
    wait_event()
    wait_stream()
    query_and_synchronize()
    prove.end()
