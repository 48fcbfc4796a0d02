"""Streams and events as mindspore.hal has them, every call proved by what it does.

The first half stands in for work by functions on streams, the second half works
on tensors. Gates hold a stream where the program has to look at it while
something is pending.
"""

from __future__ import annotations

import halstream.mindspore as ms
import numpy as np
from _proof import LIMIT, Proof
from halstream.mindspore import Tensor, hal, ops
from halstream.testing import Gate

prove = Proof()


def making_streams() -> None:
    a, b = hal.Stream(), hal.Stream(priority=-1)
    prove("a stream belongs to one device", (a.device_id, a.device_name) == (0, b.device_name))
    prove("every Stream() is another stream", a != b and a.id != b.id)
    prove("without an argument the priority is 0", a.priority == 0)
    prove("a lower number is a higher priority", b.priority < a.priority)
    prove.order("which goes first when both are ready", [1, 0], a, b)
    prove("further keywords are taken", isinstance(hal.Stream(device=0, name="x"), hal.Stream))


def a_stream_is_a_line() -> None:
    s, other = hal.Stream(), hal.Stream()
    out: list[int] = []
    gate = Gate(s)
    for number in range(100):
        s.call(out.append, number)
    other.call(out.append, -1)
    other.synchronize()
    prove("streams run independently of each other", out == [-1] and s.query() is False)
    gate.open()
    s.synchronize()
    prove("work on one stream runs in the order of the calls", out == [-1, *range(100)])


def query_and_synchronize() -> None:
    s = hal.Stream()
    with hal.StreamCtx(s):
        gate = Gate(hal.current_stream())
    prove("query is False while submitted work is pending", s.query() is False)
    prove.blocks(
        "synchronize returns when the stream is done",
        s.synchronize,
        lambda: not s.query(),
        gate.open,
    )
    prove("query is True once all of it is done", s.query() is True)


def record_event() -> None:
    s = hal.Stream()
    gate = Gate(s)
    mine = hal.Event()
    prove("record_event returns the event it was given", s.record_event(mine) is mine)
    fresh = s.record_event()
    prove("without one it makes an event", type(fresh) is hal.Event and fresh is not mine)
    late = Gate(s)
    gate.open()
    fresh.synchronize(LIMIT)
    prove("an event is done when the work before it is", mine.query() and fresh.query())
    prove("work recorded after an event does not hold it back", s.query() is False)
    late.open()
    prove.raises("record_event refuses anything but an event", TypeError, s.record_event, s)


def wait_event() -> None:
    producer, out = hal.Stream(), []
    with hal.StreamCtx(producer):
        gate = Gate(producer)
        producer.call(out.append, "produced")
        event = producer.record_event()
    consumer = hal.current_stream()
    consumer.call(out.append, "before")
    before = consumer.record_event()
    prove("wait_event returns at once", consumer.wait_event(event) is None)
    consumer.call(out.append, "consumed")
    before.synchronize(LIMIT)
    prove("work from before the wait is not held", out == ["before"])
    prove("later work waits for the event", consumer.query() is False)
    gate.open()
    consumer.synchronize()
    prove("and runs after it", out == ["before", "produced", "consumed"])
    prove.raises("wait_event refuses anything but an event", TypeError, consumer.wait_event, None)


def wait_stream() -> None:
    s1, s2, out = hal.Stream(), hal.Stream(), []
    with hal.StreamCtx(s1):
        gate = Gate(s1)
        s1.call(out.append, 1)
    with hal.StreamCtx(s2):
        s2.wait_stream(s1)
        s2.call(out.append, 2)
    unrelated = Gate(s1)
    prove("wait_stream holds later work", s2.query() is False and not out)
    gate.open()
    s2.synchronize()
    prove("until all that the other stream had been given is done", out == [1, 2])
    prove("what it was given afterwards does not count", s1.query() is False)
    unrelated.open()
    hal.synchronize()
    prove("hal.synchronize waits for every stream", s1.query() and s2.query())
    prove.raises("wait_stream refuses anything but a stream", TypeError, s1.wait_stream, 1)


def tensors_are_enqueued() -> None:
    s = hal.Stream()
    a, b = Tensor(np.ones([3, 3]), ms.float32), Tensor(np.ones([3, 3]), ms.float32)
    # A GPU was seen to leave the first copy to the host on its default stream until no other stream was held.
    prove("a sum on the default stream", str(a + b) == "[[2. 2. 2.]\n [2. 2. 2.]\n [2. 2. 2.]]")
    gate = Gate(s)
    with hal.StreamCtx(s):
        c = a + b
        event = s.record_event()
        late = Gate(s)
        a * b
    prove("operations return before they ran", s.query() is False and event.query() is False)
    current = hal.current_stream()
    current.wait_event(event)
    e = c + 3
    prove("what uses their result waits with the event", current.query() is False)
    gate.open()
    shown = "[[5. 5. 5.]\n [5. 5. 5.]\n [5. 5. 5.]]"
    prove("printing waits for the tensor's own stream", str(e) == shown)
    prove("and not for others", s.query() is False)
    late.open()
    s.synchronize()


def products_in_two_streams() -> None:
    s1, s2 = hal.Stream(), hal.Stream()
    a, b = Tensor(np.ones([1, 2]), ms.float32), Tensor(np.ones([2, 2]), ms.float32)
    gate = Gate(s1)
    with hal.StreamCtx(s1):
        c = ops.matmul(a, b)
    with hal.StreamCtx(s2):
        s2.wait_stream(s1)
        d = ops.matmul(c, b)
    prove("a product of a product that is still pending", s2.query() is False)
    gate.open()
    hal.synchronize()
    prove("is right behind wait_stream", d.tolist() == [[4.0, 4.0]] and str(d) == "[[4. 4.]]")


def a_long_product() -> None:
    a = Tensor(np.ones([1024, 2048]), ms.float32)
    b = Tensor(np.ones([2048, 4096]), ms.float32)
    s = hal.Stream()
    with hal.StreamCtx(s):
        c = ops.matmul(a, b)
        del a, b
    prove("a product of 17 GFLOP is handed over in no time", s.query() is False)
    s.synchronize()
    prove("its operands live until it is done", s.query() and bool((c.asnumpy() == 2048).all()))


def memory_of_tensors() -> None:
    before = hal.memory_allocated()
    s, kept = hal.Stream(), ops.ones([1, 2])
    hal.synchronize()
    prove("memory is taken in blocks of 512 bytes", hal.memory_allocated() - before == 512)
    gate = Gate(s)
    with hal.StreamCtx(s):
        result = kept + 1
    prove("a result is taken when its operation is handed over", hal.memory_allocated() - before == 1024)
    del kept
    prove("what is dropped counts as free at once, pending work or not", hal.memory_allocated() - before == 512)
    gate.open()
    s.synchronize()
    prove("and the pending work has read it", result.tolist() == [[2.0, 2.0]])
    del result
    prove("nothing is left", hal.memory_allocated() == before)
    hal.reset_peak_memory_stats()
    prove("a reset peak is what is held", hal.max_memory_allocated() == before)


if __name__ == "__main__":
    making_streams()
    a_stream_is_a_line()
    query_and_synchronize()
    record_event()
    wait_event()
    wait_stream()
    tensors_are_enqueued()
    products_in_two_streams()
    a_long_product()
    memory_of_tensors()
    prove.end()
