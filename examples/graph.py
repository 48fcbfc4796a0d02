"""Copy in, compute, copy out on three streams: enqueued each time, and captured once as a graph.

Chunks go through two sets of buffers, and events alone keep the order. The same
function enqueues the work of a frame, once for each frame, or once while the
streams capture: then a frame is one launch. Both must give what NumPy gives.
With ``--picture FILE`` the graph is written for graphviz, or drawn as SVG where
its program ``dot`` is installed. The exit code is not 0 when a result differs.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import halstream as hs
import numpy as np

CHUNKS, BUFFERS, SAMPLES = 8, 2, 4096


def smooth(source: np.ndarray, target: np.ndarray) -> None:
    """Average each sample with its neighbours; a plain function that knows no stream."""
    target[:] = (np.roll(source, 1) + source + np.roll(source, -1)) / 3


class Pipeline:
    """The streams and buffers, and the work of one frame."""

    def __init__(self) -> None:
        self.load, self.work, self.store = (hs.Stream() for _ in range(3))
        self.frame = hs.pinned_empty((CHUNKS, SAMPLES), "f4")
        self.result = hs.pinned_empty((CHUNKS, SAMPLES), "f4")
        self.result[:] = 0
        self.source = [hs.empty(SAMPLES, "f4") for _ in range(BUFFERS)]
        self.target = [hs.empty(SAMPLES, "f4") for _ in range(BUFFERS)]

    def enqueue(self) -> None:
        """Put a frame on the streams, which begin and end with the one that loads."""
        stored: list[hs.Event] = []
        self.work.wait(self.load)
        self.store.wait(self.load)
        for chunk in range(CHUNKS):
            source, target = self.source[chunk % BUFFERS], self.target[chunk % BUFFERS]
            if chunk >= BUFFERS:
                self.load.wait(stored[chunk - BUFFERS])
            source.copy_from(self.frame[chunk], self.load)
            self.work.wait(self.load.record())
            self.work.call_checked(smooth, source, target, reads=[source], writes=[target])
            self.store.wait(self.work.record())
            target.copy_to(self.result[chunk], self.store)
            stored.append(self.store.record())
        self.load.wait(self.store)


def timed(run: Callable[[], object], pipeline: Pipeline, want: np.ndarray) -> tuple[float, bool]:
    """Return the seconds of one frame, and whether the result is right."""
    pipeline.result[:] = 0
    begin = time.perf_counter()
    run()
    pipeline.load.synchronize()
    return time.perf_counter() - begin, bool(np.allclose(pipeline.result, want, atol=1e-5))


def draw(graph: hs.Graph, path: Path) -> str:
    """Write a picture of the graph; return what was written."""
    if (dot := shutil.which("dot")) is None:
        path.with_suffix(".dot").write_text(graph.dot())
        return f"{path.with_suffix('.dot')} (graphviz is not installed: draw it with dot -Tsvg)"
    done = subprocess.run([dot, "-Tsvg"], input=graph.dot(), capture_output=True, text=True, check=True)
    path.with_suffix(".svg").write_text(done.stdout)
    return str(path.with_suffix(".svg"))


def main() -> int:
    """Run both ways in turns, compare, print; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--frames", type=int, default=50, help="how many (default: %(default)s)")
    parser.add_argument("--picture", type=Path, help="where the graph is drawn")
    options = parser.parse_args()
    if options.frames < 1:
        parser.error("--frames is a whole number above 0")
    hs.use_backend("host")  # `smooth` works on device memory, which the host sees there only
    pipeline = Pipeline()
    hs.synchronize()
    with hs.capture(pipeline.load) as graph:
        pipeline.enqueue()
    launch = graph.instantiate()
    ways: dict[str, Callable[[], object]] = {
        "enqueued": pipeline.enqueue,
        "graph": lambda: launch.launch(pipeline.load),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    right = dict.fromkeys(ways, 0)
    random, want = np.random.default_rng(1), np.empty((CHUNKS, SAMPLES), "f4")
    for _ in range(options.frames):
        pipeline.frame[:] = random.random((CHUNKS, SAMPLES), "f4")  # the graph reads what the memory holds then
        for source, target in zip(pipeline.frame, want, strict=True):
            smooth(source, target)
        for way, run in ways.items():
            seconds, same = timed(run, pipeline, want)
            times[way].append(seconds)
            right[way] += same
    print(f"{len(graph.nodes)} nodes, {len(graph.edges)} edges; medians of {options.frames} frames, in turns\n")
    for way, taken in times.items():
        print(f"{way:>10}{1e3 * statistics.median(taken):>10.3f} ms a frame")
    if options.picture is not None:
        print(f"\npicture: {draw(graph, options.picture)}")
    print()
    for way, count in right.items():
        print(f"{'ok  ' if count == options.frames else 'FAIL'} {way}: {count} of {options.frames} frames are right")
    return 0 if all(count == options.frames for count in right.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
