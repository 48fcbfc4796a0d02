"""Compress real files on several streams: read, compress and write at the same time.

Three stages, each on a stream of its own (compression on several), work on a
few buffers that go round. Events alone keep the order: the host enqueues
everything at once and waits only at the end. The output is decompressed and
compared with the input byte by byte; the exit code is not 0 when anything
differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import halstream as hs
from _archive import CODECS, HEADER, Codec, Reader, choose, differs
from _timeline import Span, busy, draw, wrong_order

MB = 1_000_000
STAGES = ("read", "compress", "write")
WIDTH = 96  # columns of the timeline
MOST = 10  # failures that are printed


class Slot:
    """One of the buffers that go round, and the events that say how far it is.

    The events are recorded again for every chunk. A stream that waits for one
    keeps the record that was the latest when it was told to wait.
    """

    def __init__(self, size: int) -> None:
        self.buffer = memoryview(bytearray(size))
        self.raw = self.buffer
        self.packed = b""
        self.filled, self.ready, self.written = hs.Event(), hs.Event(), hs.Event()


class Work:
    """The three stages, each on one slot; plain functions that know no stream."""

    def __init__(self, files: list[Path], sizes: list[int], codec: Codec, output: BinaryIO) -> None:
        self._reader, self._sizes = Reader(files), sizes
        self._codec, self._output = codec, output

    def read(self, slot: Slot, chunk: int) -> None:
        slot.raw = slot.buffer[: self._sizes[chunk]]
        self._reader.fill(slot.raw)
        if chunk == len(self._sizes) - 1:
            self._reader.close()

    def compress(self, slot: Slot, chunk: int) -> None:
        slot.packed = self._codec.pack(slot.raw)

    def write(self, slot: Slot, chunk: int) -> None:
        self._output.write(HEADER.pack(len(slot.raw), len(slot.packed)))
        self._output.write(slot.packed)


def serial(work: Work, chunks: int, size: int) -> float:
    """Do everything on this thread; return seconds."""
    slot = Slot(size)
    begin = time.perf_counter()
    for chunk in range(chunks):
        for stage in STAGES:
            getattr(work, stage)(slot, chunk)
    return time.perf_counter() - begin


def pipelined(work: Work, chunks: int, size: int, compressors: int, buffers: int) -> tuple[float, list[Span]]:
    """Do the same on streams; return seconds and when each stage of each chunk ran."""
    reading, writing = hs.Stream(), hs.Stream()
    packing = [hs.Stream() for _ in range(compressors)]
    streams = {"read": reading, **{f"compress {i}": s for i, s in enumerate(packing)}, "write": writing}
    slots = [Slot(size) for _ in range(buffers)]
    marks: list[tuple[str, int, hs.Event, hs.Event]] = []

    def enqueue(name: str, stage: Callable[[Slot, int], None], slot: Slot, chunk: int) -> None:
        stream, start, end = streams[name], hs.Event(timing=True), hs.Event(timing=True)
        stream.record(start)
        stream.call_checked(stage, slot, chunk)
        stream.record(end)
        marks.append((name, chunk, start, end))

    begin = time.perf_counter()
    origin = hs.Event(timing=True)
    reading.record(origin)
    for chunk in range(chunks):
        slot, turn = slots[chunk % buffers], chunk % compressors
        # Never recorded in the first round, and then there is nothing to wait for.
        reading.wait(slot.written)
        enqueue("read", work.read, slot, chunk)
        reading.record(slot.filled)
        packing[turn].wait(slot.filled)
        enqueue(f"compress {turn}", work.compress, slot, chunk)
        packing[turn].record(slot.ready)
        writing.wait(slot.ready)
        enqueue("write", work.write, slot, chunk)
        writing.record(slot.written)
    settle(streams.values())
    seconds = time.perf_counter() - begin
    return seconds, [Span(name, chunk, origin.elapsed(a), origin.elapsed(b)) for name, chunk, a, b in marks]


def settle(streams: Iterable[hs.Stream]) -> None:
    """Wait for all streams, also after a failure; raise the first failure."""
    first: Exception | None = None
    for stream in streams:
        try:
            stream.synchronize()
        except Exception as exc:
            first = first or exc
    if first is not None:
        raise first


def report(spans: list[Span], compressors: int) -> None:
    """Print who was busy when: the whole run, and a part from its middle."""
    names = ["read", *(f"compress {i}" for i in range(compressors)), "write"]
    share = 100 * busy(spans, 2) / busy(spans)
    print(f"timeline, a column shows the last digit of a chunk; two or more streams at work: {share:.0f} %")
    print("\n".join(draw(spans, names, WIDTH)))
    middle = max(s.chunk for s in spans) // 2
    print("enlarged, from the middle")
    print("\n".join(draw([s for s in spans if 0 <= s.chunk - middle < 3 * compressors], names, WIDTH)) + "\n")


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""

    def positive(text: str) -> int:
        if not (text.isdecimal() and int(text)):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
        return int(text)

    cores = max(2, min(8, os.cpu_count() or 1))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", help="files to compress (default: the standard library's *.py)")
    parser.add_argument("--codec", choices=sorted(CODECS), default="zlib")
    parser.add_argument("--chunk", type=positive, default=256, help="KiB in a chunk (default: %(default)s)")
    parser.add_argument("--compressors", type=positive, default=cores, help="streams that compress (%(default)s)")
    parser.add_argument("--buffers", type=positive, help="buffers that go round (default: compressors + 2)")
    parser.add_argument("--limit", type=positive, default=32, help="most MB of the default files (%(default)s)")
    parser.add_argument("--rounds", type=positive, default=3, help="how often both are run (%(default)s)")
    return parser.parse_args()


def main() -> int:
    """Compress both ways, compare, and print the table and the timeline; return the exit code."""
    options = arguments()
    files, total, wrong = choose(options.files, options.limit * MB)
    if not wrong and not total:
        wrong = ["nothing to compress: the files are empty"]
    if wrong:
        print("\n".join(f"pipeline: {line}" for line in wrong), file=sys.stderr)
        return 2
    codec, size, compressors = CODECS[options.codec], options.chunk * 1024, options.compressors
    buffers = options.buffers or compressors + 2
    sizes = [min(size, total - at) for at in range(0, total, size)]
    slow: list[float] = []
    fast: list[tuple[float, list[Span]]] = []
    packed = 0
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "serial"), Path(folder, "pipelined")
        for _ in range(options.rounds):
            try:
                with one.open("wb") as output:
                    slow.append(serial(Work(files, sizes, codec, output), len(sizes), size))
                with two.open("wb") as output:
                    work = Work(files, sizes, codec, output)
                    fast.append(pipelined(work, len(sizes), size, compressors, buffers))
                wrong += [text for path in (one, two) if (text := differs(files, path, codec))]
            except OSError as exc:
                print(f"pipeline: {exc}", file=sys.stderr)
                return 1
            wrong += wrong_order(fast[-1][1], STAGES, buffers)
            packed = two.stat().st_size

    best, (seconds, spans) = min(slow), min(fast)
    print(f"{len(files)} files, {total / MB:.1f} MB, {options.codec} to {packed / MB:.1f} MB; best of {len(fast)}\n")
    print(f"{'chunks':>8}{'streams':>9}{'buffers':>9}{'serial':>11}{'pipelined':>11}{'ratio':>8}")
    print(f"{len(sizes):>8}{compressors + 2:>9}{buffers:>9}{best:>9.3f} s{seconds:>9.3f} s{best / seconds:>8.2f}\n")
    report(spans, compressors)
    if not wrong:
        print("ok   decompressed, every output equals the input byte for byte")
        print("ok   by event times every chunk went in order, and no buffer was filled before it was written")
    print("".join(f"FAIL {line}\n" for line in wrong[:MOST]), end="")
    if len(wrong) > MOST:
        print(f"FAIL and {len(wrong) - MOST} more")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
