"""How late a host thread wakes up that waits for short work of a device.

Usage: python -m benchmarks.waits [--work MICROSECONDS] [--library LIBRARY] [--output FILE]

An event is recorded on an idle stream, a delay is enqueued, another event is recorded, and the thread waits for it.
The time between the events, on the device's clock, is taken from the host's time between the first record and the
end of the wait: what is left is how late the wait has ended, and at most the duration of the first record.
The library is the look-alike driver unless another one is named. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from .calls import FAKE
from .report import aligned

ROUNDS = 400
#: Title -> how the thread waits, by stream and event.
WAITS = {
    "`Event.synchronize`": lambda stream, event: event.synchronize(),
    "`Event.synchronize`, with a limit": lambda stream, event: event.synchronize(timeout=10),
    "`Stream.synchronize`": lambda stream, event: stream.synchronize(),
}


def late(stream: Any, start: Any, end: Any, seconds: float, wait: Any) -> float:
    """Return the microseconds after the end of the work at which a wait has ended."""
    stream.synchronize()
    before = perf_counter_ns()
    stream.record(start)
    stream.delay(seconds)
    stream.record(end)
    wait(stream, end)
    host = (perf_counter_ns() - before) / 1000
    return host - float(start.elapsed(end)) * 1000


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=float, default=10, help="microseconds of work (10)")
    parser.add_argument("--library", default=str(FAKE), help="the CUDA driver (the look-alike)")
    parser.add_argument("--output", type=Path, help="write the figures as JSON into this file")
    args = parser.parse_args()
    os.environ.update(HALSTREAM_BACKEND="cuda", HALSTREAM_CUDA_LIBRARY=args.library)
    import halstream as hs

    stream, start, end = hs.Stream(non_blocking=True), hs.Event(timing=True), hs.Event(timing=True)
    found = {}
    for title, wait in WAITS.items():
        times = sorted(late(stream, start, end, args.work * 1e-6, wait) for _ in range(ROUNDS))
        found[title] = {"best": times[0], "median": statistics.median(times), "of 10, the 9th": times[ROUNDS * 9 // 10]}
    rows = [[title, *(f"{value:.1f}" for value in figures.values())] for title, figures in found.items()]
    print(aligned([[f"µs late, after {args.work:g} µs", "best", "median", "of 10, the 9th"], *rows]))
    if args.output:
        args.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
