"""Works the runtime hard from many threads and checks that nothing is lost and memory stays flat.

Usage: python tools/soak.py [--operations N] [--threads N] [--streams N] [--write]

Threads enqueue on shared streams, make and drop events, arrays and streams,
copy, wait and query, while one thread closes streams under the others and
another switches schedules. At the end every function that was accepted has run
exactly once, every copy has its value, and the resident memory is what it was
after the first quarter. The other half, with Go's race detector, is
TestSoak in hal/soak_test.go; `make soak` runs both.

Exit code 1 when something was lost or memory grew.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import gc
import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable

import halstream as hs
import numpy as np
from halstream import _native

#: Resident memory that may be added after the first quarter.
GROWTH_MIB = 64
LIMIT_S = 60.0
SPECS = ("fifo", "latest", "earliest", "random 3", "pct 5 3 200")


class Slot:
    """A stream that many threads use, and how many functions it has accepted and run."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.stream = self.make()
        self.accepted = itertools.count()
        self.ran = itertools.count()

    def make(self) -> hs.Stream:
        return hs.Stream(self.number % 2, non_blocking=self.number % 3 != 0, priority=-(self.number % 3))

    def function(self) -> None:
        next(self.ran)


class Soak:
    """The whole run."""

    def __init__(self, operations: int, threads: int, streams: int) -> None:
        self.slots = [Slot(number) for number in range(streams)]
        self.share = operations // threads
        self.counts: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.problems: list[str] = []
        self.done = [0] * threads
        self.ended = threading.Event()
        # While it is set no thread enqueues, so that a schedule can begin; they still call the runtime.
        self.quiet = threading.Event()
        self.lock = threading.Lock()

    def worker(self, index: int) -> None:
        """Make one thread's share of the operations."""
        try:
            self.work(index, random.Random(index))
        except BaseException as exc:
            self.problems.append(f"thread {index}: {type(exc).__name__}: {exc}")
            raise

    def work(self, index: int, pick: random.Random) -> None:
        counts: collections.Counter[str] = collections.Counter()
        events = [[hs.Event(device=device) for _ in range(4)] for device in range(2)]
        source, target = hs.pinned_empty(64, "u1"), hs.empty(64, "u1")
        source[:] = index
        own = hs.Stream(non_blocking=True)
        while (done := self.done[index]) < self.share:
            slot = pick.choice(self.slots)
            stream = slot.stream
            kind = pick.random()
            if self.quiet.is_set():
                with contextlib.suppress(hs.ClosedError):
                    stream.query()  # does not count
                continue
            self.done[index] = done + 1
            try:
                if kind < 0.30:
                    stream.query()
                    counts["query"] += 1
                elif kind < 0.55:
                    stream.nop()
                    counts["nop"] += 1
                elif kind < 0.75:
                    event = pick.choice(events[slot.number % 2])
                    stream.record(event)
                    pick.choice(self.slots).stream.wait(event)
                    self.done[index] += 1
                    counts["record and wait"] += 2
                elif kind < 0.85:
                    pick.choice(events[0]).query()
                    hs.Event(device=slot.number % 2)  # dropped at once
                    self.done[index] += 1
                    counts["event made"] += 1
                elif kind < 0.90:
                    stream.call(slot.function)
                    next(slot.accepted)
                    counts["call"] += 1
                elif kind < 0.93:
                    hs.empty(256, "u1", device=slot.number % 2)
                    counts["array made"] += 1
                elif kind < 0.95:
                    hs.Stream(slot.number % 2).nop()  # dropped with its work
                    counts["stream made"] += 1
                elif kind < 0.98:
                    target.copy_from(source, own)
                    counts["copy"] += 1
                elif kind < 0.985:
                    self.check_copy(index, own, target)
                    counts["copy checked"] += 1
                else:
                    stream.synchronize(timeout=LIMIT_S)
                    counts["synchronize"] += 1
            except (hs.ClosedError, hs.InvalidHandleError) as exc:
                counts[f"refused: {type(exc).__name__}"] += 1
            except hs.WaitTimeoutError:
                self.problems.append(f"thread {index}: {slot.stream.describe()} did not end in {LIMIT_S} s")
                return
        own.synchronize(timeout=LIMIT_S)
        with self.lock:
            self.counts += counts

    def check_copy(self, index: int, own: hs.Stream, target: hs.Array) -> None:
        out = np.zeros(64, np.uint8)
        source = hs.pinned_empty(64, "u1")
        source[:] = index
        target.copy_from(source, own)
        target.copy_to(out, own)
        own.synchronize(timeout=LIMIT_S)
        if not (out == index).all():
            self.problems.append(f"thread {index}: a copy gave {out[:8]}, not {index}")

    def closer(self) -> None:
        """Close streams while others enqueue on them, and put new ones in their place."""
        pick = random.Random("close")
        while not self.ended.wait(0.002):
            if self.quiet.is_set():
                continue
            slot = pick.choice(self.slots)
            old, slot.stream = slot.stream, slot.make()
            if pick.random() < 0.5:
                old.close()
            del old
            self.refused["streams closed under others"] += 1

    def switcher(self) -> None:
        """Put schedules in force for a moment, while other threads call."""
        for spec in itertools.cycle(SPECS):
            if self.ended.wait(0.5):
                return
            for wanted in (spec, "parallel"):
                self.quiet.set()
                self.insist(wanted)
                self.quiet.clear()
                if self.ended.wait(0.05):
                    break
            if str(_native.schedule_get()) != "parallel":
                self.quiet.set()
                self.insist("parallel")
                self.quiet.clear()

    def insist(self, spec: str) -> None:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            try:
                for device in range(2):
                    hs.Device(device).synchronize(timeout=LIMIT_S)
                _native.schedule_set(spec)
            except hs.NotReadyError:
                self.refused["schedules refused while work was pending"] += 1
                time.sleep(0.001)  # lets the others finish what they were about to enqueue
                continue
            self.refused["schedules switched"] += 1
            return
        self.problems.append(f"schedule {spec} was refused for {LIMIT_S} s")

    def run(self) -> list[tuple[int, int]]:
        """Run it all; return samples of (operations, resident KiB)."""
        workers = [threading.Thread(target=self.worker, args=(i,)) for i in range(len(self.done))]
        others = [threading.Thread(target=target) for target in (self.closer, self.switcher)]
        samples = []
        for thread in [*workers, *others]:
            thread.start()
        while any(thread.is_alive() for thread in workers):
            self.ended.wait(0.2)  # nobody sets it before the end
            samples.append((sum(self.done), resident()))
            if len(samples) % 100 == 0:
                print(f"soak: {samples[-1][0]:,} operations, {samples[-1][1] // 1024} MiB", flush=True)
        self.ended.set()
        for thread in others:
            thread.join(2 * LIMIT_S)
            if thread.is_alive():
                self.problems.append(f"{thread.name} did not end")
        return samples

    def settle(self) -> None:
        """Wait for all work and compare what was accepted with what ran."""
        for device in range(2):
            hs.Device(device).synchronize(timeout=LIMIT_S)
        for slot in self.slots:
            accepted, ran = next(slot.accepted), next(slot.ran)
            if accepted != ran:
                self.problems.append(f"slot {slot.number}: {accepted} functions were accepted, {ran} ran")


def resident() -> int:
    """Return the resident memory in KiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def judge(samples: list[tuple[int, int]], total: int, say: Callable[[str], None]) -> tuple[int, int]:
    """Return the resident memory in MiB after the first quarter (its most) and in the last one (its least)."""
    early = [kib for operations, kib in samples if total // 8 <= operations <= total // 4]
    late = [kib for operations, kib in samples if operations >= total * 3 // 4]
    before, after = max(early or [0]) // 1024, min(late or [0]) // 1024
    if not early or not late:
        say("too short for a statement about memory")
    elif after > before + GROWTH_MIB:
        say(f"memory grew from {before} to {after} MiB")
    return before, after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    options = parser.parse_args()
    faulthandler.enable()
    faulthandler.dump_traceback_later(4 * LIMIT_S + options.operations / 2000, exit=True)
    soak = Soak(options.operations, options.threads, options.streams)
    begin = time.monotonic()
    samples = soak.run()
    soak.settle()
    gc.collect()
    before, after = judge(samples, options.operations, soak.problems.append)
    took = time.monotonic() - begin
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted((soak.counts + soak.refused).items()))
    text = (
        f"{sum(soak.done):,} operations of {options.threads} threads on {options.streams} streams in {took:.0f} s; "
        f"resident memory {before} MiB in the second eighth, {after} MiB in the last quarter; "
        f"{len(soak.problems)} problems. {counts}."
    )
    print(f"soak: {text}")
    for problem in soak.problems:
        print(f"soak: PROBLEM {problem}")
    if options.write:
        from figures import put

        put("soak", [f"`python tools/soak.py --operations {options.operations}`: {text}"])
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
