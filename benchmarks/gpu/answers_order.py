"""Questions of order: what waits for the legacy default stream, and which calls wait for a held stream."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from .driver import Beside, Driver, handle, size, u32, u64
from .ptx import FILL

Answer = dict[str, Any]
LEGACY = handle(1)
HELD_S = 0.3
#: What is not held has ended after so long, on any GPU: no event tells that something does not happen.
SETTLE_S = 0.05
HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def hold_by_function(driver: Driver, stream: Any) -> Callable[[], None]:
    """Hold a stream by a function of the host, which lasts until the returned function is called."""
    import threading

    go = threading.Event()
    function = HostFunction(lambda _: go.wait(30) and None)
    driver.need("cuLaunchHostFunc", stream, function, None)

    def release() -> None:
        go.set()
        driver.kept = function  # type: ignore[attr-defined]

    return release


def legacy_order(driver: Driver) -> Answer:
    """What is seen of an idle blocking stream whose work comes behind held work of the legacy stream?"""
    context = driver.context()
    found: Answer = {}
    for how in ("function", "value"):
        for what in ("nothing", "record", "write of a value", "host function", "fill", "record and fill", "wait"):
            stream = handle(driver.out(handle, "cuStreamCreate", u32(0)))
            other, event, earlier = driver.stream(), driver.event(False), driver.event(False)
            driver.need("cuEventRecord", earlier, other)
            word, memory = u32.from_address(driver.pinned(4)), driver.memory(16)
            ran: list[int] = []
            function = HostFunction(lambda _, ran=ran: ran.append(1))
            release = hold_by_function(driver, LEGACY) if how == "function" else driver.hold(LEGACY).open
            if "record" in what:
                driver.need("cuEventRecord", event, stream)
            if what == "write of a value":
                address = u64(ctypes.addressof(word))
                driver.need("cuStreamWriteValue32_v2", stream, address, u32(1), u32(0))
            if what == "host function":
                driver.need("cuLaunchHostFunc", stream, function, None)
            if "fill" in what:
                driver.need("cuMemsetD8Async", memory, ctypes.c_ubyte(1), size(16), stream)
            if what == "wait":
                driver.need("cuStreamWaitEvent", stream, earlier, u32(0))
            time.sleep(SETTLE_S)
            row: Answer = {"query of the stream": driver.cu("cuStreamQuery", stream)}
            row["query of the event"] = driver.cu("cuEventQuery", event)
            sync = Beside(context, driver, lambda stream=stream: driver.cu("cuStreamSynchronize", stream))
            row["synchronize returns"] = sync.returned(HELD_S)
            row["ran early"] = bool(word.value or ran)
            # A record behind it, as one that looks for the end of the stream makes.
            mark = driver.event(False)
            driver.need("cuEventRecord", mark, stream)
            row["query of a record behind it"] = driver.cu("cuEventQuery", mark)
            row["query of the stream after that"] = driver.cu("cuStreamQuery", stream)
            release()
            row["synchronize returns after"] = sync.returned(10)
            driver.wait(LEGACY)
            row["query of the event at once after"] = driver.cu("cuEventQuery", event)
            driver.need("cuCtxSynchronize")
            found[f"legacy held by a {how}: {what}"] = row
    return found


def context_wait(driver: Driver) -> Answer:
    """What is seen of the streams of a context that waits for an event?"""
    context = driver.context()
    source, before, event = driver.stream(), driver.stream(), driver.event(False)
    hold = driver.hold(source)
    driver.need("cuEventRecord", event, source)
    found: Answer = {"cuCtxWaitEvent": driver.cu("cuCtxWaitEvent", handle(context), event)}
    after, memory = driver.stream(), driver.memory(16)
    for name, stream in (("before", before), ("after", after)):
        found[f"query of a stream made {name}"] = driver.cu("cuStreamQuery", stream)
        driver.need("cuMemsetD8Async", memory, ctypes.c_ubyte(1), size(16), stream)
        time.sleep(SETTLE_S)
        found[f"query of a stream made {name}, with a fill"] = driver.cu("cuStreamQuery", stream)
    hold.open()
    driver.need("cuCtxSynchronize")
    return found


def draining_calls(driver: Driver) -> Answer:
    """Which calls wait while a stream is held?"""
    context = driver.context()
    page = ctypes.create_string_buffer(1 << 16)
    graph_stream = driver.stream()
    module_text = ctypes.c_char_p(FILL.encode())
    pool, props = handle(), (u64 * 16)()
    props[0], props[1] = 1, 1  # pinned memory, no handles; on a device, the first one
    made_pool = driver.cu("cuMemPoolCreate", ctypes.byref(pool), props)

    def captured() -> Any:
        graph, run = handle(), handle()
        driver.need("cuStreamBeginCapture_v2", graph_stream, 2)
        driver.need("cuMemsetD8Async", memory, ctypes.c_ubyte(1), size(16), graph_stream)
        driver.need("cuStreamEndCapture", graph_stream, ctypes.byref(graph))
        driver.need("cuGraphInstantiateWithFlags", ctypes.byref(run), graph, u64(0))
        return graph, run

    memory = driver.memory(1 << 20)
    graph, run = captured()
    _, launched = captured()
    driver.need("cuGraphLaunch", launched, graph_stream)
    driver.need("cuCtxSynchronize")
    module, function = handle(), handle()
    driver.need("cuModuleLoadData", ctypes.byref(module), module_text)
    place, number = handle(), size()

    def fresh(name: str, *args: Any) -> Any:
        return driver.out(handle, name, *args)

    spare = {
        "memory": fresh("cuMemAlloc_v2", size(1 << 20)),
        "pinned": driver.pinned(1 << 16),
        "stream": driver.stream(),
        "event": driver.event(),
        "pooled": None,
    }
    if not made_pool:
        spare["pooled"] = handle(driver.out(u64, "cuMemAllocFromPoolAsync", size(1 << 20), pool, graph_stream))
        driver.wait(graph_stream)
    calls: dict[str, Callable[[], int]] = {
        "cuMemAlloc": lambda: driver.cu("cuMemAlloc_v2", ctypes.byref(place), size(1 << 20)),
        "cuMemAlloc of 4 GiB": lambda: driver.cu("cuMemAlloc_v2", ctypes.byref(place), size(4 << 30)),
        "cuMemFree": lambda: driver.cu("cuMemFree_v2", handle(spare["memory"])),
        "cuMemHostAlloc": lambda: driver.cu("cuMemHostAlloc", ctypes.byref(place), size(1 << 20), u32(0)),
        "cuMemFreeHost": lambda: driver.cu("cuMemFreeHost", handle(spare["pinned"])),
        "cuMemHostRegister": lambda: driver.cu("cuMemHostRegister_v2", page, size(1 << 16), u32(0)),
        "cuMemHostUnregister": lambda: driver.cu("cuMemHostUnregister", page),
        "cuMemGetInfo": lambda: driver.cu("cuMemGetInfo_v2", ctypes.byref(number), ctypes.byref(size())),
        "cuStreamCreate": lambda: driver.cu("cuStreamCreate", ctypes.byref(place), u32(1)),
        "cuStreamDestroy of an idle stream": lambda: driver.cu("cuStreamDestroy_v2", spare["stream"]),
        "cuEventCreate": lambda: driver.cu("cuEventCreate", ctypes.byref(place), u32(0)),
        "cuEventDestroy": lambda: driver.cu("cuEventDestroy_v2", spare["event"]),
        "cuModuleGetFunction": lambda: driver.cu("cuModuleGetFunction", ctypes.byref(function), module, b"fill_u32"),
        "cuModuleLoadData": lambda: driver.cu("cuModuleLoadData", ctypes.byref(place), module_text),
        "first launch of a kernel": lambda: _launch(driver, function, memory, graph_stream),
        "cuModuleUnload": lambda: driver.cu("cuModuleUnload", place),
        "cuMemPoolCreate": lambda: driver.cu("cuMemPoolCreate", ctypes.byref(place), props),
        "cuMemPoolDestroy": lambda: driver.cu("cuMemPoolDestroy", place),
        "cuMemAllocFromPoolAsync": lambda: driver.cu(
            "cuMemAllocFromPoolAsync", ctypes.byref(place), size(64 << 20), pool, graph_stream
        ),
        "cuMemFreeAsync": lambda: driver.cu("cuMemFreeAsync", spare["pooled"], graph_stream),
        "cuMemPoolTrimTo": lambda: driver.cu("cuMemPoolTrimTo", pool, size(0)),
        "cuGraphUpload": lambda: driver.cu("cuGraphUpload", run, graph_stream),
        "cuGraphLaunch, the first one": lambda: driver.cu("cuGraphLaunch", run, graph_stream),
        "cuGraphLaunch, a later one": lambda: driver.cu("cuGraphLaunch", launched, graph_stream),
        "cuGraphInstantiate": lambda: driver.cu("cuGraphInstantiateWithFlags", ctypes.byref(place), graph, u64(0)),
        "cuGraphExecDestroy": lambda: driver.cu("cuGraphExecDestroy", place),
        "cuDeviceGraphMemTrim": lambda: driver.cu("cuDeviceGraphMemTrim", 0),
        "cuCtxGetStreamPriorityRange": lambda: driver.cu(
            "cuCtxGetStreamPriorityRange", ctypes.byref(ctypes.c_int()), ctypes.byref(ctypes.c_int())
        ),
        "cuEventElapsedTime": lambda: _elapsed(driver),
    }
    found: Answer = {}
    for how in ("value", "function"):
        for name, call in calls.items():
            if how == "function" and name in ("cuMemFree", "cuMemFreeHost", "cuEventDestroy", "cuMemFreeAsync"):
                continue  # its object is gone
            if "idle stream" in name:
                spare["stream"] = driver.stream()
            stream = driver.stream()
            release = driver.hold(stream).open if how == "value" else hold_by_function(driver, stream)
            beside = Beside(context, driver, call)
            row: Answer = {"returns": beside.returned(HELD_S)}
            release()
            if not row["returns"]:
                row["returns after"] = beside.returned(10)
            row |= {"code": beside.code, "us": round(beside.took_us, 1)}
            driver.cu("cuCtxSynchronize")
            found[f"{name}, while a {how} is awaited"] = row
    return found


def _launch(driver: Driver, function: Any, memory: Any, stream: Any) -> int:
    arguments = u64(memory.value), u32(7), u32(4)
    pointers = (ctypes.c_void_p * 3)(*[ctypes.addressof(a) for a in arguments])
    one = u32(1)
    return driver.cu("cuLaunchKernel", function, one, one, one, u32(32), one, one, u32(0), stream, pointers, None)


def _elapsed(driver: Driver) -> int:
    first, last, stream = driver.event(), driver.event(), driver.stream()
    driver.need("cuEventRecord", first, stream)
    driver.need("cuEventRecord", last, stream)
    driver.wait(stream)
    return driver.cu("cuEventElapsedTime", ctypes.byref(ctypes.c_float()), first, last)


def captured_query(driver: Driver) -> Answer:
    """What does a query of a captured event do to the capture, and which wait is refused then?"""
    driver.context()
    found: Answer = {}
    for mode in (0, 1, 2):
        for relaxed in (False, True):
            for query in (False, True):
                first, second = driver.stream(), driver.stream()
                event, memory = driver.event(False), driver.memory(16)
                row = {"begin": driver.cu("cuStreamBeginCapture_v2", first, mode)}
                row["fill"] = driver.cu("cuMemsetD8Async", memory, ctypes.c_ubyte(1), size(16), first)
                row["record"] = driver.cu("cuEventRecord", event, first)
                before = ctypes.c_int(2)
                if relaxed:
                    driver.need("cuThreadExchangeStreamCaptureMode", ctypes.byref(before))
                if query:
                    row["query of the event"] = driver.cu("cuEventQuery", event)
                state = ctypes.c_int()
                row["is capturing"] = driver.cu("cuStreamIsCapturing", first, ctypes.byref(state)) or state.value
                row["wait of another stream"] = driver.cu("cuStreamWaitEvent", second, event, u32(0))
                row["is capturing then"] = driver.cu("cuStreamIsCapturing", first, ctypes.byref(state)) or state.value
                if relaxed:
                    driver.need("cuThreadExchangeStreamCaptureMode", ctypes.byref(before))
                row["end"] = driver.cu("cuStreamEndCapture", first, ctypes.byref(handle()))
                words = "relaxed thread" if relaxed else "thread"
                found[f"mode {mode}, {words}, {'with' if query else 'without'} a query"] = row
    return found


def inside_functions(driver: Driver) -> Answer:
    """What do calls inside a function of the host give?"""
    driver.context()
    stream, other, event = driver.stream(), driver.stream(), driver.event(False)
    driver.need("cuEventRecord", event, other)
    driver.wait(other)
    calls: dict[str, Callable[[], int]] = {
        "cuDriverGetVersion": lambda: driver.cu("cuDriverGetVersion", ctypes.byref(ctypes.c_int())),
        "cuEventQuery": lambda: driver.cu("cuEventQuery", event),
        "cuEventSynchronize": lambda: driver.cu("cuEventSynchronize", event),
        "cuStreamQuery of another": lambda: driver.cu("cuStreamQuery", other),
        "cuStreamSynchronize of another": lambda: driver.cu("cuStreamSynchronize", other),
        "cuCtxGetCurrent": lambda: driver.cu("cuCtxGetCurrent", ctypes.byref(handle())),
        "cuEventRecord": lambda: driver.cu("cuEventRecord", event, other),
        "cuStreamWaitEvent": lambda: driver.cu("cuStreamWaitEvent", other, event, u32(0)),
        "cuMemAlloc": lambda: driver.cu("cuMemAlloc_v2", ctypes.byref(handle()), size(16)),
        "cuMemHostAlloc": lambda: driver.cu("cuMemHostAlloc", ctypes.byref(handle()), size(16), u32(0)),
        "cuLaunchHostFunc": lambda: driver.cu("cuLaunchHostFunc", other, nothing, None),
        "cuStreamCreate": lambda: driver.cu("cuStreamCreate", ctypes.byref(handle()), u32(1)),
    }
    nothing = HostFunction(lambda _: None)
    found: Answer = {}
    for name, call in calls.items():
        codes: list[int] = []
        function = HostFunction(lambda _, call=call, codes=codes: codes.append(call()))
        driver.need("cuLaunchHostFunc", stream, function, None)
        try:
            driver.wait(stream)
        except TimeoutError:
            found[name] = "it did not return"
            return found
        found[name] = codes[0] if codes else None
    return found


def graph_memory(driver: Driver) -> Answer:
    """What reaches the memory of a graph after a launch that frees it, and what do its figures say?"""
    driver.context()
    stream, address, graph, run = driver.stream(), u64(), handle(), handle()
    driver.need("cuStreamBeginCapture_v2", stream, 2)
    driver.need("cuMemAllocAsync", ctypes.byref(address), size(4096), stream)
    driver.need("cuMemsetD8Async", address, ctypes.c_ubyte(1), size(16), stream)
    driver.need("cuMemFreeAsync", address, stream)
    driver.need("cuStreamEndCapture", stream, ctypes.byref(graph))

    def figures() -> list[int]:
        values = []
        for number in range(4):
            box = u64()
            values.append(driver.cu("cuDeviceGetGraphMemAttribute", 0, number, ctypes.byref(box)) or box.value)
        return values

    found: Answer = {"figures of the capture": figures()}
    driver.need("cuGraphInstantiateWithFlags", ctypes.byref(run), graph, u64(0))
    found["figures of the executable"] = figures()
    found["fill before a launch"] = driver.cu("cuMemsetD8Async", address, ctypes.c_ubyte(1), size(8), stream)
    found["launch"] = driver.cu("cuGraphLaunch", run, stream)
    driver.wait(stream)
    found["figures after the launch"] = figures()
    found["fill after the launch"] = driver.cu("cuMemsetD8Async", address, ctypes.c_ubyte(1), size(8), stream)
    found["synchronize"] = driver.cu("cuStreamSynchronize", stream)
    found["trim"] = driver.cu("cuDeviceGraphMemTrim", 0)
    found["figures after it"] = figures()
    found["fill after that"] = driver.cu("cuMemsetD8Async", address, ctypes.c_ubyte(1), size(8), stream)
    found["synchronize after that"] = driver.cu("cuStreamSynchronize", stream)
    return found


ANSWERS: dict[str, Callable[[Driver], Answer]] = {
    "legacy_order": legacy_order,
    "context_wait": context_wait,
    "draining_calls": draining_calls,
    "captured_query": captured_query,
    "inside_functions": inside_functions,
    "graph_memory": graph_memory,
}
