"""Rows of graphs: each ratio is taken of turns in one process, one way after the other."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

from ..measure import Sheet, quiet

TURNS = 31
NODES, LAUNCHES, CHAIN, MANY = 100, 10, 1000, 10_000


def measure(sheet: Sheet) -> None:
    """Measure launches, captures and the making of executables."""
    import halstream as hs

    s = hs.Stream(non_blocking=True)

    def one_by_one(count: int) -> Callable[[], None]:
        return lambda: [s.nop() for _ in range(count)] and None

    def captured(count: int) -> Any:
        with hs.capture(s, "relaxed") as graph:
            one_by_one(count)()
        return graph

    with sheet.attempt("graph_launch"):
        run = captured(NODES).instantiate()
        launches = [lambda: [run.launch(s) for _ in range(LAUNCHES)], one_by_one(LAUNCHES * NODES)]
        launched, plain = in_turns(launches, s.synchronize)
        sheet.put("graph_launch", plain / launched)
    with sheet.attempt("graph_chain"):
        # Of fills, for empty nodes of a chain take no time at all.
        long, short = fills(s, CHAIN).instantiate(), fills(s, 1).instantiate()
        whole, least = in_turns([lambda x=x: done(x, s) for x in (long, short)], s.synchronize)
        sheet.put("graph_chain", (whole - least) / (CHAIN - 1))
    with sheet.attempt("graph_native"):
        env = {"run": branches(s).instantiate(), "s": s}
        sheet.single("graph_native", "run.launch(s); s.synchronize()", env, "s.synchronize()")
    with sheet.attempt("graph_capture"):
        sheet.single("graph_capture_empty", "with capture(s, 'relaxed'): pass", {"capture": hs.capture, "s": s})
        sheet.put("graph_capture", capture_ratio(s, s.nop))
        sheet.put("graph_capture_call", capture_ratio(s, lambda: s.call(nothing)))
        sheet.put("graph_capture_record", capture_ratio(s, s.record))
        event = hs.Event()
        sheet.put("graph_capture_wait", capture_ratio(s, lambda: s.wait(s.record(event))))
        other = hs.Stream(non_blocking=True)
        sheet.put("graph_capture_fork", capture_ratio(s, lambda: (other.wait(s.record()), s.wait(other.record()))))
    with sheet.attempt("graph_instantiate"):
        graphs = [captured(count) for count in (MANY, MANY // 10)]
        taken, tenth = in_turns([graph.instantiate for graph in graphs], lambda: None)
        sheet.put("graph_instantiate", taken / 1e3)
        sheet.put("graph_instantiate_growth", taken / tenth / 10)


def fills(stream: Any, count: int) -> Any:
    """Return a graph of so many fills of one word, each behind the one before it."""
    import halstream as hs

    word = hs.zeros(1, "u4")
    hs.synchronize()
    with hs.capture(stream, "relaxed") as graph:
        for number in range(count):
            word.fill(number, stream)
    return graph


def branches(stream: Any) -> Any:
    """Return a graph of 4 chains of 5 native functions, which have no order among each other."""
    import halstream as hs

    # An empty function of C that every machine has: void f(void *), free of NULL.
    function = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value
    chains = [stream, *(hs.Stream(non_blocking=True) for _ in range(3))]
    with hs.capture(stream, "relaxed") as graph:
        for chain in chains[1:]:
            chain.wait(stream)
        for chain in chains:
            for _ in range(5):
                chain.call_native(function)
        for chain in chains[1:]:
            stream.wait(chain)
    return graph


def done(run: Any, stream: Any) -> None:
    """Launch, and wait for the end."""
    run.launch(stream)
    stream.synchronize()


def nothing() -> None:
    """Do nothing, on a stream."""


def capture_ratio(s: Any, operation: Callable[[], Any]) -> float:
    """Return what capturing an operation `CHAIN` times takes, with begin and end, against enqueueing it as often."""
    import halstream as hs

    def plain() -> None:
        for _ in range(CHAIN):
            operation()

    def captured() -> Any:
        with hs.capture(s, "relaxed") as graph:
            plain()
        return graph

    def warm() -> None:
        s.nop()  # the first call after a pause wakes threads, which other rows measure
        s.synchronize()
        with hs.capture(s, "relaxed"):  # and what the graph before has kept is released
            pass

    capturing, enqueueing = in_turns([captured, plain], s.synchronize, warm)
    return capturing / enqueueing


def in_turns(
    ways: list[Callable[[], Any]], after: Callable[[], Any], before: Callable[[], Any] = lambda: None
) -> list[float]:
    """Return the median microseconds of each of several ways; `before` and `after` are not counted."""
    times: list[list[float]] = [[] for _ in ways]
    for turn in range(TURNS + 1):
        for way, taken in zip(ways, times, strict=True):
            with quiet():
                before()
                start = time.perf_counter()
                kept = way()  # an object that is dropped ends outside of the measured time
                seconds = time.perf_counter() - start
            del kept
            after()
            if turn:  # the first one warms up
                taken.append(seconds * 1e6)
    return [statistics.median(taken) for taken in times]
