"""Copy in, compute, copy out: a file's samples through a low-pass, on three streams at once.

The file goes through pinned buffers in chunks. One stream copies them to the
device, one filters them with NumPy's FFT, one copies the results back; two
sets of buffers go round, and events alone keep the order. Where the host cannot
see the device's memory, the stream that filters brings the samples to pinned
memory for it, and the result back. The result is
compared with the serial one. Then the same is run again with one wait left
out at a time, and a gate that makes the race happen for certain: the output
is wrong in the chunk where the wait is missing, and nowhere else. The exit
code is not 0 when anything differs from what is expected.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

import halstream as hs
import numpy as np
from _timeline import Span, busy, draw, svg, wrong_order

MB = 1_000_000
SAMPLE = np.dtype("<i2")
STAGES = ("in", "compute", "out")
BUFFERS = 2
LIMIT = 10.0  # seconds after which what should happen at once counts as not happening
WIDTH = 96

#: Waits that can be left out: who waits, for which stage, and what goes wrong without.
WAITS = {
    "compute": ("in", "filters a buffer that was not filled yet"),
    "out": ("compute", "copies a result that was not computed yet"),
    "host": ("out", "writes a buffer that was not copied yet"),
}


def low_pass(source: np.ndarray, target: np.ndarray) -> None:
    """Keep the lower eighth of the frequencies; a plain function that knows no stream."""
    spectrum = np.fft.rfft(source.astype(np.float32))
    spectrum[len(spectrum) // 8 :] = 0
    target[:] = np.clip(np.rint(np.fft.irfft(spectrum, len(source))), -32768, 32767)


class Slot:
    """One of the sets of buffers that go round, and the events that say how far it is."""

    def __init__(self, samples: int) -> None:
        self.filled, self.result = hs.pinned_empty(samples, SAMPLE), hs.pinned_empty(samples, SAMPLE)
        self.source, self.target = hs.empty(samples, SAMPLE), hs.empty(samples, SAMPLE)
        # Pages that were never touched would make the first chunks slow.
        self.filled[:] = self.result[:] = 0
        self.source.fill(0)
        self.target.fill(0)
        self.done = {stage: hs.Event() for stage in STAGES}
        # What the filter works on where it cannot work on the device's memory.
        self.seen = None if hs.backend() == "host" else [hs.pinned_empty(samples, SAMPLE) for _ in range(2)]

    def compute(self, stream: hs.Stream, size: int) -> None:
        """Filter the source into the target, as work of the stream."""
        source, target = self.source[:size], self.target[:size]
        if self.seen is None:
            stream.call_checked(low_pass, source, target, reads=[source], writes=[target])
            return
        samples, filtered = (buffer[:size] for buffer in self.seen)
        source.copy_to(samples, stream)
        stream.call_checked(low_pass, samples, filtered, reads=[samples], writes=[filtered])
        target.copy_from(filtered, stream)


class Job:
    """The file, cut into chunks."""

    def __init__(self, path: Path, samples: int, chunks: int | None = None) -> None:
        self.path, self.samples = path, samples
        total = path.stat().st_size // SAMPLE.itemsize
        self.sizes = [min(samples, total - at) for at in range(0, total, samples)][:chunks]


def fill(file: BinaryIO, buffer: np.ndarray) -> None:
    """Read the whole buffer from a file."""
    if file.readinto(memoryview(buffer).cast("B")) != buffer.nbytes:  # type: ignore[attr-defined]
        raise OSError("the file became shorter while it was read")


def serial(job: Job, output: Path) -> float:
    """Do everything on this thread, with the same copies; return seconds."""
    filled, source, target, result = (np.zeros(job.samples, SAMPLE) for _ in range(4))
    begin = time.perf_counter()
    with job.path.open("rb") as file, output.open("wb") as out:
        for size in job.sizes:
            fill(file, filled[:size])
            np.copyto(source[:size], filled[:size])
            low_pass(source[:size], target[:size])
            np.copyto(result[:size], target[:size])
            out.write(memoryview(result[:size]).cast("B"))
    return time.perf_counter() - begin


class Overlapped:
    """The same on streams.

    With `lacking` the wait of that name is left out for one chunk. With `held`
    the stage that is waited for is held there by a gate until the one who
    waits has gone ahead, or did not within a moment: `ahead` tells.
    """

    def __init__(self, job: Job, lacking: str = "", held: tuple[str, int] | None = None) -> None:
        self.job, self.lacking, self.held = job, lacking, held
        self.streams = {stage: hs.Stream() for stage in STAGES}
        self.slots = [Slot(job.samples) for _ in range(BUFFERS)]
        hs.synchronize()
        self.marks: list[tuple[str, int, hs.Event, hs.Event]] = []
        self.ahead = False
        self.gate: hs.testing.Gate | None = None

    def run(self, output: Path) -> tuple[float, list[Span]]:
        """Return seconds, and when each stage of each chunk ran."""
        begin = time.perf_counter()
        origin = self.streams["in"].record(hs.Event(timing=True))
        count = len(self.job.sizes)
        with self.job.path.open("rb") as file, output.open("wb") as out:
            for chunk in range(count + BUFFERS):
                slot = self.slots[chunk % BUFFERS]
                if chunk >= BUFFERS:
                    self.take(slot, chunk - BUFFERS, out)
                if chunk < count:
                    # Only now: a pinned buffer is read when the stream gets there.
                    fill(file, slot.filled[: self.job.sizes[chunk]])
                    self.enqueue(slot, chunk)
        for stream in self.streams.values():
            stream.synchronize()
        seconds = time.perf_counter() - begin
        return seconds, [Span(name, chunk, origin.elapsed(a), origin.elapsed(b)) for name, chunk, a, b in self.marks]

    def enqueue(self, slot: Slot, chunk: int) -> None:
        """Put the three stages of a chunk on their streams; nothing here waits."""
        size = self.job.sizes[chunk]
        source, target = slot.source[:size], slot.target[:size]
        work = {
            "in": lambda s: source.copy_from(slot.filled[:size], s),
            "compute": lambda s: slot.compute(s, size),
            "out": lambda s: target.copy_to(slot.result[:size], s),
        }
        gate = None
        for stage, stream in self.streams.items():
            before = WAITS.get(stage)
            if before and not self.lacks(stage, chunk):
                stream.wait(slot.done[before[0]])
            if self.held == (stage, chunk):
                gate = hs.testing.Gate(stream)
            start, end = hs.Event(timing=True), hs.Event(timing=True)
            stream.record(start)
            work[stage](stream)
            stream.record(end)
            stream.record(slot.done[stage])
            self.marks.append((stage, chunk, start, end))
        if gate is not None and self.held is not None:
            self.provoke(slot, gate, self.held[0])

    def provoke(self, slot: Slot, gate: hs.testing.Gate, stage: str) -> None:
        """See whether who should wait goes ahead while the stage is held; then let it go on."""
        if self.lacking == "host":
            self.gate = gate  # it goes ahead in `take`, when this buffer's turn comes
            return
        # What must not be done while the gate is closed: the next stage, or what the host waits for.
        following = STAGES[min(STAGES.index(stage) + 1, len(STAGES) - 1)]
        try:
            slot.done[following].synchronize(timeout=LIMIT if self.lacking else 0.1)
            self.ahead = True
        except hs.WaitTimeoutError:
            self.ahead = False
        self.release(slot, gate, stage)

    def release(self, slot: Slot, gate: hs.testing.Gate, stage: str) -> None:
        """Open the gate, and wait: what a missing wait let loose spoils one chunk and no other."""
        gate.open()
        slot.done[stage].synchronize()

    def take(self, slot: Slot, chunk: int, out: BinaryIO) -> None:
        """Write a chunk's result once it is there."""
        if not self.lacks("host", chunk):
            slot.done["out"].synchronize()
        out.write(memoryview(slot.result[: self.job.sizes[chunk]]).cast("B"))
        if self.gate is not None and self.lacks("host", chunk):
            self.ahead = not slot.done["out"].query()
            self.release(slot, self.gate, "out")

    def lacks(self, who: str, chunk: int) -> bool:
        """Return whether this is the wait that is left out."""
        return self.lacking == who and self.held is not None and self.held[1] == chunk


def chunks_of(path: Path, job: Job) -> list[bytes]:
    """Return the chunks of an output file."""
    with path.open("rb") as file:
        return [file.read(size * SAMPLE.itemsize) for size in job.sizes] + [file.read()]


def wrong_chunks(path: Path, want: list[bytes], job: Job) -> list[int]:
    """Return the numbers of the chunks that differ from the serial result."""
    return [i for i, (a, b) in enumerate(zip(chunks_of(path, job), want, strict=True)) if a != b]


def ablation(job: Job, want: list[bytes], folder: Path) -> list[str]:
    """Leave out one wait at a time; print what happens; return what is not as expected."""
    # A chunk that differs from the one that had its buffers before, or nothing would show.
    found = [i for i in range(BUFFERS, len(job.sizes)) if want[i] != want[i - BUFFERS][: len(want[i])]]
    if not found:
        return ["the file repeats itself: no chunk differs from the one before it in the same buffer"]
    chunk = found[0]
    short = Job(job.path, job.samples, chunk + BUFFERS + 1)
    want = [*want[: len(short.sizes)], b""]
    stale = want[chunk - BUFFERS][: len(want[chunk])]
    output, wrong = folder / "ablation", []
    print(f"one wait at a time, with the stage before it held by a gate at chunk {chunk}\n")
    print(f"{'wait':<22}{'kept: wrong chunks':>20}{'left out: wrong chunks':>25}   without it the stream or host")
    for who, (before, harm) in WAITS.items():
        bad = {}
        for lacking in ("", who):
            run = Overlapped(short, lacking, (before, chunk))
            run.run(output)
            bad[lacking] = wrong_chunks(output, want, short)
            if run.ahead != bool(lacking):
                wrong.append(f"{who} {'did not go' if lacking else 'went'} ahead of {before}")
            if bad[lacking] != ([chunk] if lacking else []):
                wrong.append(f"{who} {'without' if lacking else 'with'} its wait: wrong chunks {bad[lacking]}")
            elif lacking and chunks_of(output, short)[chunk] != stale:
                wrong.append(f"{who} without its wait: chunk {chunk} is wrong, but not what the buffer held before")
        print(f"{who + ' for ' + before:<22}{bad['']!s:>20}{bad[who]!s:>25}   {harm}")
    print()
    return wrong


def real_file(folder: Path, size: int) -> Path:
    """Return a file of at least so many bytes: libraries and modules of this machine, one after another."""
    path, total = folder / "input", 0
    library = Path(sysconfig.get_path("stdlib"))
    places = [library, Path(sysconfig.get_config_var("LIBDIR") or library), Path("/usr/lib")]
    with path.open("wb") as out:
        for place in places:
            for file in sorted(place.rglob("*")):
                if total >= size:
                    return path
                try:
                    if file.suffix != ".pyc" and file.is_file() and not file.is_symlink():
                        total += out.write(file.read_bytes()[: size - total])
                except OSError:
                    continue  # not for us to read
    return path


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="16-bit samples (default: this machine's libraries, 68 MB)")
    parser.add_argument("--chunk", type=int, default=256, help="KiB in a chunk (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often both are run (default: %(default)s)")
    parser.add_argument("--picture", type=Path, help="where the timeline is drawn, as SVG")
    options = parser.parse_args()
    if options.chunk < 1 or options.rounds < 1:
        parser.error("--chunk and --rounds are whole numbers above 0")
    return options


def main() -> int:
    """Run both ways, compare, print table and timeline, then the ablation; return the exit code."""
    options = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = options.file or real_file(folder, 68 * MB)
        try:
            job = Job(path, options.chunk * 1024 // SAMPLE.itemsize)
        except OSError as exc:
            print(f"overlap: cannot read {path}: {exc.strerror or exc}", file=sys.stderr)
            return 2
        if len(job.sizes) <= BUFFERS:
            print(f"overlap: {path} has {len(job.sizes)} chunks, and {BUFFERS + 1} are needed", file=sys.stderr)
            return 2
        slow, fast, wrong = [], [], []
        for _ in range(options.rounds):
            slow.append(serial(job, folder / "serial"))
            fast.append(Overlapped(job).run(folder / "overlapped"))
            want = chunks_of(folder / "serial", job)
            bad = wrong_chunks(folder / "overlapped", want, job)
            wrong += [f"chunks {bad} differ from the serial result"] if bad else []
            wrong += wrong_order(fast[-1][1], STAGES, BUFFERS)
        best, (seconds, spans) = min(slow), min(fast)
        total = sum(job.sizes) * SAMPLE.itemsize / MB
        print(f"{total:.1f} MB in chunks of {options.chunk} KiB, on {os.cpu_count()} cores; best of {len(fast)}\n")
        print(f"{'':>12}{'seconds':>10}{'MB/s':>8}")
        print(f"{'serial':>12}{best:>10.3f}{total / best:>8.0f}")
        print(f"{'overlapped':>12}{seconds:>10.3f}{total / seconds:>8.0f}   ratio {best / seconds:.2f}\n")
        for stage in STAGES:
            mine = [s for s in spans if s.stream == stage]
            share = busy(mine) / 1e3 / seconds
            print(f"{stage:>12}{share * seconds:>10.3f}   {100 * share:.0f} % of the time at work")
        print("\ntimeline from the middle, a column shows the last digit of a chunk")
        middle = len(job.sizes) // 2
        shown = [s for s in spans if 0 <= s.chunk - middle < 4]
        print("\n".join(draw(shown, STAGES, WIDTH)) + "\n")
        if options.picture is not None:
            options.picture.write_text(svg(shown, STAGES))
        broken = ablation(job, want, folder)
    if not wrong:
        print("ok   every byte equals the serial result, and by event times every chunk went in order")
    if not broken:
        print("ok   each wait that was left out spoiled its chunk, and with the wait in place none was")
    print("".join(f"FAIL {line}\n" for line in wrong + broken), end="")
    return 1 if wrong or broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
