"""The questions to a driver, one function each; its first line is the question."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

from .driver import Beside, Driver, DriverError, handle, size, u32, u64

HELD_S = 0.3  # a call that has not returned after so long waits for the stream
KIB = 1 << 10
SIZES = (4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 64 * KIB + 1, 128 * KIB, KIB * KIB, 16 * KIB * KIB)
#: Functions with several generations, and the symbols that each may resolve to.
GENERATIONS = {
    "cuGraphExecUpdate": ("cuGraphExecUpdate", "cuGraphExecUpdate_v2"),
    "cuMemPrefetchAsync": ("cuMemPrefetchAsync", "cuMemPrefetchAsync_v2"),
    "cuStreamGetCaptureInfo": (
        "cuStreamGetCaptureInfo",
        "cuStreamGetCaptureInfo_v2",
        "cuStreamGetCaptureInfo_v3",
    ),
    "cuEventElapsedTime": ("cuEventElapsedTime", "cuEventElapsedTime_v2"),
    "cuCtxSynchronize": ("cuCtxSynchronize", "cuCtxSynchronize_v2"),
    "cuStreamGetCtx": ("cuStreamGetCtx", "cuStreamGetCtx_v2"),
}

Answer = dict[str, Any]


def elapsed(driver: Driver) -> Answer:
    """Which code has the time between events of two devices, and of events in a capture?"""
    versions = ("cuEventElapsedTime", "cuEventElapsedTime_v2")
    found: Answer = {}

    def ask(what: str, first: Any, second: Any) -> None:
        for name in versions:
            found[f"{what}, {name}"] = driver.cu(name, ctypes.byref(ctypes.c_float()), first, second)

    context = driver.context(0)
    stream, plain, captured = driver.stream(), driver.event(), driver.event()
    driver.need("cuEventRecord", plain, stream)
    driver.wait(stream)
    if driver.count > 1:
        driver.context(1)
        other, far = driver.stream(), driver.event()
        driver.need("cuEventRecord", far, other)
        driver.wait(other)
        ask("two devices", plain, far)
        driver.need("cuCtxSetCurrent", handle(context))
    else:
        found["two devices"] = "there is one device"
    code = driver.cu("cuStreamBeginCapture_v2", stream, 2)
    found["begin capture"] = code
    if not code:
        found["record in a capture"] = driver.cu("cuEventRecord", captured, stream)
        ask("while it is captured", plain, captured)
        found["query while it is captured"] = driver.cu("cuEventQuery", captured)
        graph = handle()
        found["end capture"] = driver.cu("cuStreamEndCapture", stream, ctypes.byref(graph))
        ask("after the capture", plain, captured)
        found["query after the capture"] = driver.cu("cuEventQuery", captured)
    return found


def addresses(driver: Driver) -> Answer:
    """What does cuGetProcAddress give for versions above the driver's own?"""
    if not driver.has("cuGetProcAddress_v2"):
        return {"absent": "cuGetProcAddress_v2"}
    own, found = driver.version(), {}
    for base, symbols in GENERATIONS.items():
        known = {ctypes.cast(getattr(driver.library, s), handle).value: s for s in symbols if driver.has(s)}
        rows = {}
        for version in (8000, 10020, 11030, 12000, 12030, 12080, 13000, own, own + 10, own + 1000, 99000):
            pointer, status = handle(), ctypes.c_int(-1)
            where = (ctypes.byref(pointer), version, u64(0), ctypes.byref(status))
            code = driver.cu("cuGetProcAddress_v2", base.encode(), *where)
            symbol = known.get(pointer.value, "another function" if pointer.value else None)
            rows[version] = {"code": code, "status": status.value, "symbol": symbol}
        found[base] = rows
    return {"driver": own, "functions": found}


def _copy(driver: Driver, context: int, count: int, to_device: bool) -> Answer:
    stream, source = driver.stream(), ctypes.create_string_buffer(b"\x11" * count, count)
    device, back = driver.memory(count), driver.pinned(count)
    driver.need("cuMemsetD8Async", device, ctypes.c_ubyte(0x33), size(count), stream)
    driver.wait(stream)
    hold = driver.hold(stream)
    if to_device:
        call = Beside(context, driver, lambda: driver.cu("cuMemcpyHtoDAsync_v2", device, source, size(count), stream))
    else:
        call = Beside(context, driver, lambda: driver.cu("cuMemcpyDtoHAsync_v2", source, device, size(count), stream))
    found: Answer = {"returns while the stream is held": call.returned(HELD_S)}
    if to_device and found["returns while the stream is held"]:
        ctypes.memset(source, 0x22, count)  # a source that is read late has these bytes
    hold.open()
    found["returns after"] = call.returned(10)
    driver.wait(stream)
    found["code"] = call.code
    found["microseconds"] = round(call.took_us, 1)
    if to_device and found["returns while the stream is held"]:
        driver.need("cuMemcpyDtoHAsync_v2", handle(back), device, size(count), stream)
        driver.wait(stream)
        seen = set(ctypes.string_at(back, count))
        found["bytes read"] = {frozenset({0x11}): "at the call", frozenset({0x22}): "late"}.get(
            frozenset(seen), f"mixed: {sorted(seen)}"
        )
    driver.need("cuMemFree_v2", device)
    return found


def pageable(driver: Driver) -> Answer:
    """When does a copy from or to pageable memory return, and when is its source read?"""
    context = driver.context()
    return {
        direction: {count: _copy(driver, context, count, direction == "host to device") for count in SIZES}
        for direction in ("host to device", "device to host")
    }


def _cost(call: Callable[[], Any], finish: Callable[[], Any], count: int = 200, rounds: int = 15) -> list[float]:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - begin) / count * 1e6)
        finish()
    return times


def memory_operations(driver: Driver) -> Answer:
    """What do a stream's writes of, and waits for, a value cost?"""
    driver.context()
    stream, event, word = driver.stream(), driver.event(timing=False), u64(driver.pinned(16))
    one, zero = u32(1), u32(0)
    batch = (u64 * 12)()  # two operations of 48 bytes
    batch[0], batch[1], batch[2] = 2, word.value, 1
    batch[6], batch[7], batch[8] = 1, word.value, 1
    version, current = ctypes.byref(ctypes.c_int()), ctypes.byref(handle())
    calls: dict[str, Callable[[], Any]] = {
        "cuDriverGetVersion (what ctypes costs)": lambda: driver.cu("cuDriverGetVersion", version),
        "cuCtxGetCurrent": lambda: driver.cu("cuCtxGetCurrent", current),
        "cuEventRecord": lambda: driver.cu("cuEventRecord", event, stream),
        "cuStreamQuery": lambda: driver.cu("cuStreamQuery", stream),
        "cuStreamWriteValue32_v2": lambda: driver.cu("cuStreamWriteValue32_v2", stream, word, one, zero),
        "cuStreamWaitValue32_v2": lambda: driver.cu("cuStreamWaitValue32_v2", stream, word, one, zero),
        "cuStreamBatchMemOp_v2 of two": lambda: driver.cu("cuStreamBatchMemOp_v2", stream, u32(2), batch, zero),
    }
    found: Answer = {}
    for name, call in calls.items():
        if (code := call()) and code != 600:
            found[name] = {"code": code}
            continue
        raw = _cost(call, lambda: driver.wait(stream))
        found[name] = {"median us": round(statistics.median(raw), 3), "raw": [round(t, 3) for t in raw]}
    found["device time"] = _device_time(driver, stream, word)
    return found


def _device_time(driver: Driver, stream: Any, word: Any) -> Answer:
    first, last, took = driver.event(), driver.event(), []
    for _ in range(15):
        driver.need("cuEventRecord", first, stream)
        for _ in range(200):
            driver.need("cuStreamWriteValue32_v2", stream, word, u32(1), u32(0))
        driver.need("cuEventRecord", last, stream)
        driver.wait(stream)
        span = ctypes.c_float()
        driver.need("cuEventElapsedTime", ctypes.byref(span), first, last)
        took.append(span.value * 1000 / 200)
    return {"us of a write": round(statistics.median(took), 3)}


def free_pinned(driver: Driver) -> Answer:
    """What does cuMemFreeHost do while a copy from that memory is pending?"""
    context, count = driver.context(), 1 << 20
    stream, device, source = driver.stream(), driver.memory(count), driver.pinned(count)
    ctypes.memset(source, 0x44, count)
    hold = driver.hold(stream)
    driver.need("cuMemcpyHtoDAsync_v2", device, handle(source), size(count), stream)
    call = Beside(context, driver, lambda: driver.cu("cuMemFreeHost", handle(source)))
    found: Answer = {"returns while the copy is held": call.returned(HELD_S)}
    hold.open()
    found["returns after"] = call.returned(10)
    found["code"] = call.code
    back = driver.pinned(count)
    try:
        driver.wait(stream)
        driver.need("cuMemcpyDtoHAsync_v2", handle(back), device, size(count), stream)
        driver.wait(stream)
        found["copied right"] = set(ctypes.string_at(back, count)) == {0x44}
    except DriverError as exc:
        found["afterwards"] = str(exc)
    return found


def destroy_capturing(driver: Driver) -> Answer:
    """What does cuStreamDestroy do to a stream that is capturing?"""
    driver.context()
    stream = driver.stream()
    found: Answer = {"begin": driver.cu("cuStreamBeginCapture_v2", stream, 2)}
    if found["begin"]:
        return found
    event = driver.event(timing=False)
    found["record"] = driver.cu("cuEventRecord", event, stream)
    found["destroy"] = driver.cu("cuStreamDestroy_v2", stream)
    found["query of its event"] = driver.cu("cuEventQuery", event)
    found["synchronize the context"] = driver.cu("cuCtxSynchronize")
    other = driver.stream()
    found["record of its event elsewhere"] = driver.cu("cuEventRecord", event, other)
    found["another capture"] = driver.cu("cuStreamBeginCapture_v2", other, 2)
    return found


def query_submits(driver: Driver) -> Answer:
    """Does work reach the device without a query after it?"""
    driver.context()
    stream, word = driver.stream(), u32.from_address(driver.pinned(4))
    address = u64(ctypes.addressof(word))
    found: Answer = {}
    for name, query in (("without a query", False), ("with a query", True)):
        times: list[float] = []
        unseen = 0
        for turn in range(1, 51):
            driver.wait(stream)
            word.value = 0
            begin = time.perf_counter()
            driver.need("cuStreamWriteValue32_v2", stream, address, u32(turn), u32(0))
            if query:
                driver.cu("cuStreamQuery", stream)
            end = begin + 0.1
            while word.value != turn and time.perf_counter() < end:
                pass
            if word.value == turn:
                times.append((time.perf_counter() - begin) * 1e6)
            else:
                unseen += 1
        found[name] = {
            "median us until seen": round(statistics.median(times), 2) if times else None,
            "not seen within 100 ms": unseen,
            "raw": [round(t, 2) for t in times],
        }
    return found


ANSWERS: dict[str, Callable[[Driver], Answer]] = {
    "elapsed": elapsed,
    "addresses": addresses,
    "pageable": pageable,
    "memory_operations": memory_operations,
    "free_pinned": free_pinned,
    "destroy_capturing": destroy_capturing,
    "query_submits": query_submits,
}
