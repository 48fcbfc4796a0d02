"""Random programs of copies and fills of device, pinned, pageable and managed memory, and an oracle for their races.

What each call orders is written down here from the vendor's table of synchronous
behaviour, without the checker: happens-before is a closure over bits.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import halstream as hs
import numpy as np
from halstream._schedules.block import schedule
from halstream.cupy import cuda
from halstream.cupy.cuda import runtime

SIZE = 64
STREAMS = 3  # 0 is the legacy default stream, the others have no order with it
KINDS = ("device", "device", "pinned", "pinned", "pageable", "pageable", "managed")
ON_HOST = ("pinned", "pageable")


class Call(NamedTuple):
    """A call: `to` and `source` are numbers of blocks."""

    kind: str  # memcpy, memcpyAsync, memset, memsetAsync, record, wait, synchronize, host
    stream: int = 0
    to: int = -1
    source: int = -1
    other: int = 0  # stream that a wait names


def random_call(rng: random.Random) -> Call:
    """Draw a call that the runtime accepts."""
    kind = rng.choice(
        (
            "memcpy",
            "memcpy",
            "memcpyAsync",
            "memcpyAsync",
            "memset",
            "memsetAsync",
            "wait",
            "wait",
            "synchronize",
            "host",
        )
    )
    stream = rng.randrange(STREAMS)
    if kind in ("memcpy", "memcpyAsync"):
        to, source = rng.sample([i for i, where in enumerate(KINDS) if where != "managed"], 2)
        return Call(kind, 0 if kind == "memcpy" else stream, to, source)
    if kind in ("memset", "memsetAsync"):
        to = rng.choice([i for i, where in enumerate(KINDS) if where != "pageable"])
        return Call(kind, 0 if kind == "memset" else stream, to)
    if kind == "host":
        to = rng.choice([i for i, where in enumerate(KINDS) if where in ON_HOST])
        return Call(kind, 0, *((to, -1) if rng.random() < 0.5 else (-1, to)))
    return Call(kind, stream, other=rng.randrange(STREAMS))


class Oracle:
    """Each access is a bit; streams and the host know those that happen before what they do next."""

    def __init__(self) -> None:
        self.known = [0] * STREAMS
        self.host = 0
        self.accesses: list[tuple[int, int, bool]] = []  # bit, block, whether it writes
        self.racy = False

    def access(self, known: int, reads: int = -1, writes: int = -1) -> int:
        bit = 1 << len(self.accesses)
        for block, write in ((reads, False), (writes, True)):
            if block < 0:
                continue
            self.racy |= any(
                not earlier & known and at == block and (write or wrote) for earlier, at, wrote in self.accesses
            )
        added = [(bit, block, write) for block, write in ((reads, False), (writes, True)) if block >= 0]
        self.accesses += added
        if len(added) > 1:  # the bits stay those of the list's length
            self.accesses[-1] = (bit, writes, True)
        return bit

    def add(self, call: Call) -> None:
        known = self.known[call.stream] | self.host
        if call.kind == "wait":
            self.known[call.stream] = known | self.known[call.other]
        elif call.kind == "synchronize":
            self.host |= self.known[call.stream]
        elif call.kind == "host":
            self.host |= self.access(self.host, call.source, call.to)
        elif call.kind in ("memset", "memsetAsync"):
            self.known[call.stream] = known | self.access(known, writes=call.to)
            if call.kind == "memset" and KINDS[call.to] != "device":
                self.host |= self.known[call.stream]  # the host can work on it
        else:
            self.copy(call, known)

    def copy(self, call: Call, known: int) -> None:
        to, source = KINDS[call.to], KINDS[call.source]
        blocking = call.kind == "memcpy"
        if source == "pageable" and to == "device":
            # The host reads the source within the call (M14), after the stream's earlier copies to it. The host
            # itself comes after these only where the call waits for what was enqueued before.
            if blocking:
                self.host |= self.known[call.stream]
            self.host |= self.access(known, reads=call.source)
            known |= self.host
            self.known[call.stream] = known | self.access(known, writes=call.to)
            return
        self.known[call.stream] = known | self.access(known, call.source, call.to)
        within_the_host = to in ON_HOST and source in ON_HOST
        if within_the_host or (blocking and (to in ON_HOST or source == "pinned")):
            self.host |= self.known[call.stream]


def racy(program: list[Call]) -> bool:
    """Return whether two accesses of a program conflict without an order."""
    oracle = Oracle()
    for call in program:
        oracle.add(call)
    return oracle.racy


def random_program(seed: int) -> list[Call]:
    """Return a program; about half of them have no race."""
    rng = random.Random(seed)
    program: list[Call] = []
    for _ in range(rng.randrange(3, 14)):
        call = random_call(rng)
        if rng.random() < 0.7 and racy([*program, call]):
            continue
        program.append(call)
    return program


def reported(program: list[Call]) -> bool:
    """Run a program and return whether a race is reported."""
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        streams = [cuda.Stream.null, *(cuda.Stream(non_blocking=True) for _ in range(STREAMS - 1))]
        managed = cuda.ManagedMemory(SIZE)
        arrays = {
            "device": lambda: hs.empty(SIZE, np.uint8),
            "pinned": lambda: hs.pinned_empty(SIZE, np.uint8),
            "pageable": lambda: np.zeros(SIZE, np.uint8),
            "managed": lambda: managed,
        }
        blocks = [arrays[where]() for where in KINDS]
        pointers = [one.ctypes.data if isinstance(one, np.ndarray) else one.ptr for one in blocks]
        for call in program:
            stream = streams[call.stream]
            if call.kind == "memcpy":
                runtime.memcpy(pointers[call.to], pointers[call.source], SIZE, runtime.memcpyDefault)
            elif call.kind == "memcpyAsync":
                runtime.memcpyAsync(pointers[call.to], pointers[call.source], SIZE, runtime.memcpyDefault, stream.ptr)
            elif call.kind == "memset":
                runtime.memset(pointers[call.to], 1, SIZE)
            elif call.kind == "memsetAsync":
                runtime.memsetAsync(pointers[call.to], 1, SIZE, stream.ptr)
            elif call.kind == "wait":
                stream.wait_event(streams[call.other].record())
            elif call.kind == "synchronize":
                stream.synchronize()
            else:
                hs.host_access(blocks[max(call.to, call.source)], "w" if call.to >= 0 else "r")
        for stream in streams:
            stream.synchronize()
    assert not report.by_query and not report.by_host_timing, str(report)
    return bool(report.races or report.refills)
