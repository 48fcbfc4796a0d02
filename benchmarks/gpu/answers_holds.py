"""Questions about streams that are held: what goes on beside them, and in which memory streams wait for values."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from .answers_order import SETTLE_S, Answer, hold_by_function
from .driver import Driver, handle, size, u32, u64

#: The driver's handle of the legacy default stream.
LEGACY = 1


def value_memory(driver: Driver) -> Answer:
    """Which memory can a stream write a value of 32 or 64 bits to, and wait for it there?"""
    driver.context()
    stream = driver.stream()
    places: dict[str, Any] = {"cuMemAlloc": driver.memory(4096), "pinned": u64(driver.pinned(4096))}

    def pooled(kind: int) -> Any:
        props, pool = (u64 * 16)(), handle()
        words = ctypes.cast(props, ctypes.POINTER(u32))
        words[0], words[1], words[2], words[3] = 1, kind, 1, 0
        driver.need("cuMemPoolCreate", ctypes.byref(pool), props)
        return u64(driver.out(u64, "cuMemAllocFromPoolAsync", size(4096), pool, stream))

    def of_default_pool() -> Any:
        return u64(driver.out(u64, "cuMemAllocAsync", size(4096), stream))

    def virtual(compressible: bool = False) -> Any:
        words = (u32 * 16)()
        words[0], words[1], words[2], words[3] = 1, 0, 1, 0  # CUmemAllocationProp
        least = size()
        driver.need("cuMemGetAllocationGranularity", ctypes.byref(least), words, 0)
        made = u64(driver.out(u64, "cuMemCreate", least, words, u64(0)))
        at = u64(driver.out(u64, "cuMemAddressReserve", least, size(0), u64(0), u64(0)))
        driver.need("cuMemMap", at, least, size(0), made, u64(0))
        access = (u32 * 3)(1, 0, 3)
        driver.need("cuMemSetAccess", at, least, access, size(1))
        return at

    makers: dict[str, Callable[[], Any]] = {
        "a pool without handles": lambda: pooled(0),
        "a pool with file descriptors": lambda: pooled(1),
        "the default pool": of_default_pool,
        "cuMemCreate": virtual,
        "managed": lambda: u64(driver.out(u64, "cuMemAllocManaged", size(4096), u32(1))),
    }
    found: Answer = {}
    for name, make in makers.items():
        try:
            places[name] = make()
        except Exception as exc:
            found[name] = str(exc)
    driver.wait(stream)
    for name, at in places.items():
        row: Answer = {}
        for bits, kind in ((32, u32), (64, u64)):
            row[f"write {bits}"] = driver.cu(f"cuStreamWriteValue{bits}_v2", stream, at, kind(5), u32(0))
            row[f"wait {bits}"] = driver.cu(f"cuStreamWaitValue{bits}_v2", stream, at, kind(5), u32(0))
            batch = (u64 * 6)()
            batch[0], batch[1], batch[2] = (2 if bits == 32 else 5), at.value, 5
            row[f"batch {bits}"] = driver.cu("cuStreamBatchMemOp_v2", stream, u32(1), batch, u32(0))
        row["end"] = driver.cu("cuStreamSynchronize", stream)
        found[name] = row
    return found


def hardware_queues(driver: Driver) -> Answer:
    """Which of forty streams made one after another cannot go on while one of them is held?"""
    driver.context()
    streams, found = [driver.stream() for _ in range(40)], {}
    words = [u32.from_address(driver.pinned(4)) for _ in streams]
    number = 0
    for used in (False, True):
        for held in (0, 1, 5, 20):
            for how in ("value", "function"):
                number += 1
                release = driver.hold(streams[held]).open if how == "value" else hold_by_function(driver, streams[held])
                for word, stream in zip(words, streams, strict=True):
                    address = u64(ctypes.addressof(word))
                    driver.need("cuStreamWriteValue32_v2", stream, address, u32(number), u32(0))
                time.sleep(SETTLE_S)
                blocked = [i for i, word in enumerate(words) if word.value != number and i != held]
                release()
                driver.need("cuCtxSynchronize")
                title = "streams used before" if used else "streams as they come"
                found[f"{title}, stream {held} held by a {how}"] = blocked
    return found


def copies_beside_holds(driver: Driver) -> Answer:
    """Which work of one stream does not go on while another stream is held, in front of or behind work of its own?"""
    driver.context()
    found: Answer = {}
    count = 1 << 12
    pinned, word = driver.pinned(count), u32.from_address(driver.pinned(4))
    there, here = driver.memory(count), driver.memory(count)

    def work(kind: str, stream: Any, memory: Any) -> None:
        calls: dict[str, Callable[[], Any]] = {
            "nothing": lambda: None,
            "host to device": lambda: driver.need("cuMemcpyHtoDAsync_v2", memory, handle(pinned), size(count), stream),
            "device to host": lambda: driver.need("cuMemcpyDtoHAsync_v2", handle(pinned), memory, size(count), stream),
            "device to device": lambda: driver.need("cuMemcpyDtoDAsync_v2", there, here, size(count), stream),
            "fill": lambda: driver.need("cuMemsetD8Async", memory, ctypes.c_ubyte(1), size(count), stream),
            "value": lambda: driver.need(
                "cuStreamWriteValue32_v2", stream, u64(ctypes.addressof(word)), u32(1), u32(0)
            ),
        }
        calls[kind]()

    kinds = ("host to device", "device to host", "device to device", "fill", "value")
    for place in ("behind", "in front of", "behind, the hold is an event of a third stream held,"):
        for first in ("nothing", *kinds):
            held, other, third = driver.stream(), driver.stream(), driver.stream()
            event = driver.event(False)
            if place.startswith("behind"):
                work(first, held, there)
                driver.wait(held)
                work(first, held, there)
            if "third" in place:
                hold = driver.hold(third)
                driver.need("cuEventRecord", event, third)
                driver.need("cuStreamWaitEvent", held, event, u32(0))
                work(first, held, there)
            else:
                hold = driver.hold(held)
            if place == "in front of":
                work(first, held, there)
            late = []
            for kind in kinds:
                end = time.monotonic() + SETTLE_S
                work(kind, other, here)
                while driver.cu("cuStreamQuery", other) and time.monotonic() < end:
                    pass
                if driver.cu("cuStreamQuery", other):
                    late.append(kind)
                    other = driver.stream()
            hold.open()
            driver.need("cuCtxSynchronize")
            found[f"a hold {place} {first}"] = late
    return found


def event_between_holds(driver: Driver) -> Answer:
    """Does a stream go on that waits for an event in front of a later hold, once the earlier holds are open?"""
    driver.context()
    found = {}
    for waiting in ("a stream", "the legacy default stream"):
        for memory in ("cuMemAlloc", "a pool"):
            for copies in ("none", "host to device", "device to host", "both"):
                for times in (1, 4):
                    title = f"{waiting}, memory of {memory}, copies {copies}, {times} in a row"
                    found[title] = _between_holds(driver, waiting, memory, copies, times)
    return found


def _between_holds(driver: Driver, waiting: str, memory_of: str, copies: str, times: int) -> Answer:
    """Hold a stream three times, with copies behind each hold, and open the first two holds.

    The waiting stream copies, writes a word behind that and is held, too: the answer is
    the codes of the event's query and whether the stream has got to its word.
    """
    count = 64
    first = driver.stream()
    second = driver.stream() if waiting == "a stream" else handle(LEGACY)
    pinned, event = driver.pinned(count), driver.event(False)
    if memory_of == "cuMemAlloc":
        memory, other = driver.memory(count), driver.memory(count)
    else:
        memory, other = (u64(driver.out(u64, "cuMemAllocAsync", size(count), first)) for _ in range(2))
        driver.wait(first)

    def copy(stream: Any, at: Any) -> None:
        for _ in range(times):
            if copies in ("device to host", "both"):
                driver.need("cuMemcpyDtoHAsync_v2", handle(pinned), at, size(count), stream)
            if copies in ("host to device", "both"):
                driver.need("cuMemcpyHtoDAsync_v2", at, handle(pinned), size(count), stream)

    early = Hold(driver, first)
    copy(first, memory)
    task = Hold(driver, first)
    copy(first, memory)
    driver.need("cuEventRecord", event, first)
    late = Hold(driver, first)
    copy(first, memory)
    driver.need("cuStreamWaitEvent", second, event, u32(0))
    copy(second, other)
    last = Hold(driver, second)
    copy(second, other)
    time.sleep(SETTLE_S)
    row: Answer = {"event at first": driver.cu("cuEventQuery", event)}
    early.open()
    time.sleep(SETTLE_S)
    task.open()
    end = time.monotonic() + 1
    while not last.reached.value and time.monotonic() < end:
        time.sleep(SETTLE_S / 10)
    row |= {"event": driver.cu("cuEventQuery", event), "the stream goes on": bool(last.reached.value)}
    late.open()
    last.open()
    driver.need("cuCtxSynchronize")
    return row


class Hold:
    """One operation of a stream that writes a word and waits for another."""

    def __init__(self, driver: Driver, stream: Any) -> None:
        self.reached, self._opened = (u32.from_address(driver.pinned(4)) for _ in range(2))
        self.reached.value = self._opened.value = 0
        ops = (u64 * 12)()
        ops[0], ops[1], ops[2] = 2, ctypes.addressof(self.reached), 1
        ops[6], ops[7], ops[8] = 1, ctypes.addressof(self._opened), 1
        driver.need("cuStreamBatchMemOp_v2", stream, u32(2), ops, u32(0))

    def open(self) -> None:
        """Let the stream go on."""
        self._opened.value = 1


ANSWERS: dict[str, Callable[[Driver], Answer]] = {
    "value_memory": value_memory,
    "hardware_queues": hardware_queues,
    "copies_beside_holds": copies_beside_holds,
    "event_between_holds": event_between_holds,
}
