"""Random programs of copies, fills and functions over streams and devices, against NumPy.

A program is drawn as a list of steps; each names a stream, what it reads and
what it writes. Where a step touches bytes that a step on another stream
touched, and one of the two writes, an event is recorded there and waited for
here: the programs have no races by construction, and so one right result. It
is computed step by step with NumPy.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import halstream as hs
import hypothesis.strategies as st
import numpy as np
import pytest
from halstream import _memory as memory
from hypothesis import HealthCheck, given, settings

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("backend")]

LIMIT = 30.0
SIZE = 6000  # more than what is copied without an engine
STREAMS = 3
BUFFERS = 6


@dataclass
class Buffer:
    """Memory, its model, and who touched it last: per byte range and stream."""

    kind: str
    address: int
    keep: Any
    model: np.ndarray[Any, Any]
    touched: list[tuple[int, int, bool, int]] = field(default_factory=list)


@dataclass
class Range:
    buffer: int
    start: int
    size: int


spans = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE))
ranges = st.builds(
    lambda buffer, span: Range(buffer, span[0], min(span[1], SIZE - span[0])), st.integers(0, BUFFERS - 1), spans
)

fills = st.tuples(st.just("fill"), ranges, st.sampled_from([1, 2, 4]), st.integers(0, 2**32 - 1))
copies = st.tuples(st.just("copy"), ranges, st.integers(0, BUFFERS - 1), st.integers(0, SIZE - 1))
functions = st.tuples(st.just("call"), ranges, ranges, st.integers(1, 255))
natives = st.tuples(st.just("native"), ranges, st.integers(1, 255))
rows = st.tuples(
    st.just("rows"), st.integers(0, BUFFERS - 1), st.integers(0, BUFFERS - 1), st.integers(1, 40),
    st.integers(40, 90), st.integers(40, 90), st.integers(1, 60),
)  # fmt: skip
taken = st.tuples(st.just("pageable"), ranges, st.integers(0, 255))
pooled = st.tuples(st.just("pooled"), ranges, st.integers(0, BUFFERS - 1), st.integers(0, SIZE - 1))
delays = st.tuples(st.just("delay"), st.integers(1, 300))
steps = st.lists(
    st.tuples(
        st.integers(0, STREAMS - 1), st.one_of(fills, copies, copies, functions, natives, rows, taken, pooled, delays)
    ),
    min_size=12,
    max_size=60,
)

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Program:
    """Runs steps on streams and, at once, in the model."""

    def __init__(self) -> None:
        # Two streams of device 0, one blocking; one of device 1.
        self.streams = [hs.Stream(), hs.Stream(non_blocking=True), hs.Stream(device=1)]
        self.events = [hs.Event() for _ in self.streams]
        self.buffers = []
        for number in range(BUFFERS):
            if number < 2 * 2:
                block = memory.DeviceMemory(SIZE, number % 2)
                address, keep, kind = block.ptr, block, "device"
            else:
                keep = hs.pinned_empty(SIZE, np.uint8)
                address, kind = keep.ctypes.data, "pinned"
            model = (np.arange(SIZE) * (number + 3)).astype(np.uint8)
            start = hs.pinned_empty(SIZE, np.uint8)
            start[:] = model
            memory.copy(self.streams[0], address, start.ctypes.data, SIZE)
            self.buffers.append(Buffer(kind, address, keep, model))
        self.streams[0].synchronize(timeout=LIMIT)
        self.natives: list[Any] = []
        self.held = False  # a stream is held, so nothing may wait for it

    def would_wait(self, *buffers: int) -> bool:
        """Report whether a copy between these buffers, or from pageable memory to one, waits for a held stream (M5)."""
        return self.held and all(self.buffers[number].kind == "pinned" for number in buffers)

    def order(self, stream: int, *accesses: tuple[Range, bool]) -> None:
        """Wait for the accesses of other streams that these are in conflict with; note them."""
        waits = set()
        for span, writes in accesses:
            buffer = self.buffers[span.buffer]
            for start, end, wrote, other in buffer.touched:
                if other != stream and (wrote or writes) and start < span.start + span.size and span.start < end:
                    waits.add(other)
        for other in sorted(waits):
            # The same event again and again: a wait binds to the record before it.
            self.streams[other].record(self.events[other])
            self.streams[stream].wait(self.events[other])
        for span, writes in accesses:
            self.buffers[span.buffer].touched.append((span.start, span.start + span.size, writes, stream))

    def step(self, stream: int, kind: str, *operands: Any) -> None:
        getattr(self, kind)(stream, self.streams[stream], *operands)

    def place(self, span: Range) -> tuple[int, np.ndarray[Any, Any]]:
        buffer = self.buffers[span.buffer]
        return buffer.address + span.start, buffer.model[span.start : span.start + span.size]

    def fill(self, stream: int, s: hs.Stream, span: Range, size: int, value: int) -> None:
        start = span.start // 4 * 4
        span = Range(span.buffer, start, max(4, span.size // 4 * 4) if start + 4 <= SIZE else 4)
        span.size = min(span.size, (SIZE - start) // 4 * 4)
        self.order(stream, (span, True))
        address, model = self.place(span)
        memory.fill(s, address, value, size, span.size // size)
        element = value.to_bytes(4, "little")[:size]
        model[:] = np.frombuffer(element * (span.size // size), np.uint8)

    def copy(self, stream: int, s: hs.Stream, to: Range, buffer: int, start: int) -> None:
        size = min(to.size, SIZE - start)
        if buffer == to.buffer and to.start < start + size and start < to.start + size:
            with pytest.raises(hs.InvalidValueError, match="overlap"):
                memory.copy(s, self.buffers[buffer].address + to.start, self.buffers[buffer].address + start, size)
            return
        if self.would_wait(to.buffer, buffer):
            return
        to, source = Range(to.buffer, to.start, size), Range(buffer, start, size)
        self.order(stream, (source, False), (to, True))
        dst, into = self.place(to)
        src, values = self.place(source)
        memory.copy(s, dst, src, size)
        into[:] = values

    def rows(self, stream: int, s: hs.Stream, to: int, by: int, width: int, dp: int, sp: int, height: int) -> None:
        if to == by or self.would_wait(to, by):
            return
        target = Range(to, 0, dp * (height - 1) + width)
        source = Range(by, 0, sp * (height - 1) + width)
        self.order(stream, (source, False), (target, True))
        memory.copy_rows(s, self.buffers[to].address, dp, self.buffers[by].address, sp, width, height)
        for row in range(height):
            self.buffers[to].model[row * dp : row * dp + width] = self.buffers[by].model[row * sp : row * sp + width]

    def call(self, stream: int, s: hs.Stream, to: Range, source: Range, factor: int) -> None:
        to, source = self.seen(to), self.seen(source)
        size = min(to.size, source.size)
        to, source = Range(to.buffer, to.start, size), Range(source.buffer, source.start, size)
        self.order(stream, (source, False), (to, True))
        into, values = self.array(to), self.array(source)

        def body(into: Any, values: Any) -> None:
            into[:] = values[::-1] * np.uint8(factor) + into

        s.call_checked(body, into, values, reads=[values], writes=[into])
        _, a = self.place(to)
        _, b = self.place(source)
        a[:] = b[::-1] * np.uint8(factor) + a

    def native(self, stream: int, s: hs.Stream, span: Range, value: int) -> None:
        span = self.seen(span)
        self.order(stream, (span, True))
        address, model = self.place(span)
        function = CALLBACK(lambda p, n=span.size: ctypes.memset(p, value, n) and None)
        s.call_native(function, address)
        self.natives.append(function)
        model[:] = value

    def pageable(self, stream: int, s: hs.Stream, to: Range, seed: int) -> None:
        # Taken at the call: what becomes of it afterwards changes nothing.
        if self.would_wait(to.buffer):
            return
        self.order(stream, (to, True))
        address, model = self.place(to)
        host = (np.arange(to.size) * 5 + seed).astype(np.uint8)
        memory.copy(s, address, host.ctypes.data, to.size)
        model[:] = host
        host[:] = 0xEE

    def pooled(self, stream: int, s: hs.Stream, to: Range, buffer: int, start: int) -> None:
        # Through memory that is taken and given back in stream order.
        size = min(to.size, SIZE - start)
        to, source = Range(to.buffer, to.start, size), Range(buffer, start, size)
        self.order(stream, (source, False), (to, True))
        scratch = memory.PooledMemory(size, s)
        dst, into = self.place(to)
        src, values = self.place(source)
        memory.copy(s, scratch.ptr, src, size)
        memory.copy(s, dst, scratch.ptr, size)
        scratch.free()
        into[:] = values.copy()

    def delay(self, stream: int, s: hs.Stream, micros: int) -> None:
        s.delay(micros * 1e-6)

    def seen(self, span: Range) -> Range:
        """Return a range that functions see: on a vendor's device the same of pinned memory."""
        if hs.backend() == "host" or self.buffers[span.buffer].kind == "pinned":
            return span
        return Range(2 * 2 + span.buffer % 2, span.start, span.size)

    def array(self, span: Range) -> Any:
        """Return a range as a function gets it: an Array of the device, or a NumPy array."""
        buffer = self.buffers[span.buffer]
        if buffer.kind == "pinned":
            return buffer.keep[span.start : span.start + span.size]
        return hs.Array(buffer.keep, buffer.address + span.start, (span.size,), np.dtype(np.uint8))

    def check(self) -> None:
        for stream in self.streams:
            stream.synchronize(timeout=LIMIT)
        out = np.empty(SIZE, np.uint8)
        for number, buffer in enumerate(self.buffers):
            memory.copy_blocking(out.ctypes.data, buffer.address, SIZE)
            wrong = np.nonzero(out != buffer.model)[0]
            assert len(wrong) == 0, f"buffer {number} differs from byte {wrong[:1]} on, in {len(wrong)} bytes"


@settings(
    max_examples=200,
    deadline=None,  # time is no property of the runtime on a shared machine
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps=steps)
def test_programs_without_races_have_the_sequential_result(steps: Any) -> None:
    program = Program()
    for stream, (kind, *operands) in steps:
        program.step(stream, kind, *operands)
    program.check()


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps=steps, held=st.integers(0, STREAMS - 1))
def test_the_same_where_a_stream_is_held_until_all_is_enqueued(steps: Any, held: int) -> None:
    program = Program()
    program.held = True
    with hs.testing.Gate(program.streams[held]):
        for stream, (kind, *operands) in steps:
            program.step(stream, kind, *operands)
    program.check()
