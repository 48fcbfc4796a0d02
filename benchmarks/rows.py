"""The rows of the table: what a user feels, and what is to hold."""

from __future__ import annotations

from dataclasses import dataclass

OWN = "halstream"
OPENCL, IREE, ASYNCIO, THREAD, NUMPY, TORCH = "intel", "iree", "asyncio_loop", "thread_queue", "numpy", "torch"
STREAMS = (OPENCL, IREE, ASYNCIO, THREAD)


@dataclass(frozen=True)
class Row:
    """A row: a figure, its unit, and how large it may be.

    `most` bounds the figure, `least` does so from below. `ratio` bounds the figure divided by that of the best of
    `peers`, measured in the same run; of a rate it is the peer's divided by ours.
    """

    name: str
    title: str
    unit: str
    most: float | None = None
    least: float | None = None
    ratio: float | None = None
    peers: tuple[str, ...] = ()

    @property
    def to_hold(self) -> str:
        """The bounds in words."""
        words = [
            f"{sign} {number(bound)}" for sign, bound in (("≤", self.most), ("≥", self.least)) if bound is not None
        ]
        if self.ratio is not None:
            words.append(f"≤ {number(self.ratio)} of the best peer's")
        return ", ".join(words)


ROWS = (
    Row("import", "import", "ms", 25),
    Row("first", "import and first stream", "ms", 35),
    Row("record", "`record_event()` with a new event", "µs", 0.5, ratio=1, peers=STREAMS),
    Row("query", "query of an event", "µs", 0.3, peers=STREAMS),
    Row("with", "`with stream:`", "µs", 0.8),
    Row("round_trip", "enqueue and synchronize an empty operation", "µs", 1, ratio=1, peers=STREAMS),
    Row("cross", "an operation on A, an event, B waits, synchronize B", "µs", 2, ratio=1, peers=STREAMS),
    Row("function", "a Python function, from enqueue to run", "µs", ratio=1.5, peers=(THREAD,)),
    Row("functions", "Python functions", "per second", least=400_000, peers=(THREAD, ASYNCIO)),
    Row("copy_4m", "copy of 4 MB, and synchronize", "ms", ratio=1, peers=(NUMPY,)),
    Row("copy_64m", "copy of 64 MB, and synchronize", "ms", ratio=1.1, peers=(NUMPY,)),
    Row("checked", "what the sanitizer adds to an operation", "µs", 1),
    Row("findings", "2,000 findings reported", "s", 3),
    Row("schedules", "50 schedules of a test with 1,000 operations", "s", 2),
    Row("torch_add", "a small operator of the real torch, enqueued", "µs", 4, peers=(TORCH,)),
    Row("torch_resnet", "training step of ResNet-18, 32 images of 32x32", "ms", ratio=1.25, peers=(TORCH,)),
    Row("checked_resnet", "the same with the sanitizer", "ms", ratio=1.6, peers=(TORCH,)),
    Row(
        "torch_transformer", "training step of a transformer, 4 layers, 16x64 tokens", "ms", ratio=1.25, peers=(TORCH,)
    ),
    Row("checked_transformer", "the same with the sanitizer", "ms", ratio=1.6, peers=(TORCH,)),
    Row("torch_start", "`halstream run --torch` above the same program with plain torch", "s", 0.6),
)


def number(value: float) -> str:
    """Return a figure with three digits that count, of large ones only thousands."""
    return f"{round(value, -3):,.0f}" if value >= 10_000 else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
