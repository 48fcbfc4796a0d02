"""Streams and events as torch.cuda has them, every call proved by what it does.

Work is stood in for by functions on streams; gates hold a stream where the
program has to look at it while something is pending.
"""

from __future__ import annotations

from _proof import LIMIT, Proof
from halstream.testing import Gate
from halstream.torch import cuda

prove = Proof()


def making_streams() -> None:
    here = cuda.current_device()
    prove("a stream lives on the current device", cuda.Stream().device.index == here)
    prove("None is that device, too", cuda.Stream(None).device.index == here)
    prove("and so is a negative number", cuda.Stream(-1).device.index == here)
    last = cuda.device_count() - 1
    prove("a number names a device", cuda.Stream(last).device.index == last)
    prove("and so does a name", cuda.Stream(f"cuda:{last}").device.index == last)
    with cuda.device(last):
        prove("the current device may be another", cuda.Stream().device.index == last)


def priorities() -> None:
    least, greatest = cuda.Stream.priority_range()
    prove("the priority is 0 if none is given", cuda.Stream().priority == 0)
    prove("a lower number is a higher priority", greatest < least)
    low, high = cuda.Stream(priority=0), cuda.Stream(priority=-1)
    prove.order("which goes first when both are ready", [1, 0], low, high)
    prove("a priority in the range is kept", cuda.Stream(priority=-1).priority == -1)
    prove("a large positive one becomes the lowest", cuda.Stream(priority=99).priority == least)
    prove("a large negative one the highest", cuda.Stream(priority=-99).priority == greatest)


def a_stream_is_a_line() -> None:
    s, other, out = cuda.Stream(), cuda.Stream(), []
    gate = Gate(s)
    for number in range(100):
        s.call(out.append, number)
    other.call(out.append, -1)
    other.synchronize()
    prove("streams run independently of each other", out == [-1] and s.query() is False)
    gate.open()
    s.synchronize()
    prove("work on one stream runs in the order of the calls", out == [-1, *range(100)])


def with_statement() -> None:
    s, out, before = cuda.Stream(), [], cuda.current_stream()
    gate = Gate(s)
    with s:
        prove("in a with block the stream is the current one", cuda.current_stream() == s)
        cuda.current_stream().call(out.append, "inside")
        inside = cuda.current_stream().record_event()
    prove("work of the block is on that stream", inside.query() is False and not out)
    prove("after the block the old stream is current again", cuda.current_stream() == before)
    with cuda.stream(s):
        prove("cuda.stream does the same", cuda.current_stream() == s)
    gate.open()
    inside.synchronize()
    prove("and it has run when the event is done", out == ["inside"])


def query_and_synchronize() -> None:
    s = cuda.Stream()
    gate = Gate(s)
    prove("query is False while submitted work is pending", s.query() is False)
    prove.blocks(
        "synchronize returns when the stream is done",
        s.synchronize,
        lambda: not s.query(),
        gate.open,
    )
    prove("query is True once all of it is done", s.query() is True)


def record_event() -> None:
    s, mine = cuda.Stream(), cuda.Event()
    gate = Gate(s)
    prove("record_event returns the event it was given", s.record_event(mine) is mine)
    fresh = s.record_event()
    prove("without one it makes an event", type(fresh) is cuda.Event and fresh is not mine)
    late = Gate(s)
    prove("an event is pending while the work before it is", mine.query() is False)
    gate.open()
    fresh.synchronize()
    prove("and done when that is", mine.query() and fresh.query() and not s.query())
    late.open()


def wait_event() -> None:
    producer, consumer, out = cuda.Stream(), cuda.Stream(), []
    gate = Gate(producer)
    producer.call(out.append, "produced")
    event = producer.record_event()
    consumer.call(out.append, "before")
    before = consumer.record_event()
    prove(
        "wait_event returns while the event is pending",
        consumer.wait_event(event) is None and event.query() is False,
    )
    consumer.call(out.append, "after")
    before.synchronize()
    prove("work from before the wait is not held", out == ["before"])
    prove("work from after it is", consumer.query() is False)
    gate.open()
    consumer.synchronize()
    prove("until the event is done", out == ["before", "produced", "after"])


def wait_stream() -> None:
    one, two, out = cuda.Stream(), cuda.Stream(), []
    gate = Gate(one)
    one.call(out.append, 1)
    prove(
        "wait_stream returns while the other stream is busy",
        two.wait_stream(one) is None and one.query() is False,
    )
    later = Gate(one)
    two.call(out.append, 2)
    prove("later work waits", two.query() is False and not out)
    gate.open()
    two.synchronize(LIMIT)
    prove("for what the other stream had at the call", out == [1, 2])
    prove("and not for what it was given afterwards", one.query() is False)
    later.open()
    cuda.synchronize()
    prove("cuda.synchronize waits for every stream of the device", one.query() is True)


if __name__ == "__main__":
    making_streams()
    priorities()
    a_stream_is_a_line()
    with_statement()
    query_and_synchronize()
    record_event()
    wait_event()
    wait_stream()
    prove.end()
