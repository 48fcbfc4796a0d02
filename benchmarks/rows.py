"""The rows of the table and what each should reach."""

from __future__ import annotations

from dataclasses import dataclass

#: Peers whose worker runs while the caller goes on: the others' hand-over only appends to a list.
BESIDE = ("intel", "pocl", "iree")
ALL = (*BESIDE, "asyncio_loop", "thread_queue")


@dataclass(frozen=True)
class Row:
    """A row: what is measured, its unit, and its targets.

    `target` bounds the figure, `share` bounds its ratio to the best peer.
    """

    name: str
    title: str
    unit: str = "µs"
    target: float | None = None
    share: float | None = None
    against: tuple[str, ...] = ALL
    more: bool = False  # more is better

    @property
    def limits(self) -> str:
        """The targets in words."""
        words = []
        if self.target is not None:
            words.append(f"{'≥' if self.more else '≤'} {number(self.target)}")
        if self.share is not None:
            whole = round(1 / self.share)
            exact = whole > 1 and abs(1 / self.share - whole) < 1e-6
            part = f"1/{whole} of" if exact else f"{number(self.share)} times"
            words.append(f"≤ {part} the best")
        return ", ".join(words)

    def reached(self, value: float, ratio: float | None) -> str:
        """Say whether a figure is within the targets."""
        verdicts = {}
        if self.target is not None:
            verdicts["figure"] = value >= self.target if self.more else value <= self.target
        if self.share is not None and ratio is not None:
            verdicts["ratio"] = ratio <= self.share
        if not verdicts:
            return ""
        if len(set(verdicts.values())) == 1:
            return "yes" if all(verdicts.values()) else "no"
        return ", ".join(f"{name}: {'yes' if kept else 'no'}" for name, kept in verdicts.items())


ROWS = (
    Row("record", "record on an idle stream ¹", target=0.45, share=0.5, against=BESIDE),
    Row("record_new", "record on an idle stream, a new event each time"),
    Row("nop", "enqueue of an empty operation ¹", target=0.45, share=0.5, against=BESIDE),
    Row("query", "query of a finished event", target=0.30),
    Row("sync_idle", "synchronize of an idle stream", target=0.30),
    Row("round_trip", "enqueue + synchronize, empty operation: median", target=1.2, share=0.5),
    Row("round_trip_p99", "the same: 99th percentile", target=10),
    Row("idle_cpu", "processor time in 5 ms of idleness after it"),
    Row("handoff", "empty operation, the host polls until it is done"),
    Row("cross", "operation on A, event, B waits, synchronize B", target=3, share=0.25),
    Row("hop", "1,000 hops between two streams, per hop: submit and run", target=0.5),
    Row("hop_run", "the same behind a gate, per hop: run", target=0.5),
    Row("functions_rate", "Python functions on one stream", "per second", target=400_000, more=True),
    Row("function_delay", "Python function: enqueue to run", target=25),
    Row("streams8_rate", "empty operations over 8 streams", "per second", target=1_800_000, more=True),
    Row("pending_bytes", "one of 1,000,000 pending operations ²", "bytes", target=128),
    Row("with_stream", "`with stream:`", target=1.0),
    Row("with_cuda_stream", "`with cuda.stream(s):`, which makes an object"),
    Row("busy_record_median", "record beside a computing thread ÷ quiet: median", "x", target=1.5),
    Row("busy_record_mean", "the same: mean", "x", target=2.5),
    Row("busy_nop_median", "enqueue beside a computing thread ÷ quiet: median", "x", target=1.5),
    Row("busy_nop_mean", "the same: mean", "x", target=2.5),
    Row("many_threads", "threads that 10,000 idle streams add", "", target=0),
    Row("many_goroutines", "goroutines that they add", "", target=0),
    Row("many_bytes", "one of 10,000 idle streams", "bytes", target=1536),
    Row("many_each", "an operation on each of them ÷ as many on one stream", "x", target=1.5),
    Row("many_beside", "operations on one stream beside them ÷ alone", "x", target=1.5),
    Row("many_legacy_each", "blocking ones in turn with the default stream ÷ one in turn with it", "x", target=1.5),
    Row("many_legacy_beside", "the default stream beside 10,000 blocking ones ÷ beside one", "x", target=1.5),
    Row("copy_4m", "copy of 4 MB from pinned memory, and synchronize", share=1 / 1.2, against=BESIDE),
    Row("copy_4m_numpy", "the same ÷ NumPy's copy of its own arrays", "x", target=1 / 0.95),
    Row("copy_64m", "copy of 64 MB from pinned memory, and synchronize", share=1.0, against=BESIDE),
    Row("copy_64m_numpy", "the same ÷ NumPy's copy of its own arrays", "x"),
    Row("handover_64m", "handing over a copy of 64 MB to an idle stream", target=3, against=BESIDE),
    Row("handover_busy", "the same, to a stream with work"),
    Row("copy_1k", "enqueue of a copy of 1 KiB", target=0.8, against=BESIDE),
    Row("copy_1k_array", "the same by `Array.copy_from`"),
    Row("pool", "allocate 4 KiB in stream order, and free it", target=0.8),
    Row("pool_object", "the same as an object, `PooledMemory`"),
    Row("native", "native function: enqueue + synchronize (peers: a kernel)", share=1.0),
    Row("call_arrays", "Python functions on two arrays", "per second", target=100_000, more=True),
    Row("record_copying", "record while every engine copies 64 MB ÷ quiet", "x", target=3),
    Row("dlpack", "DLPack export", target=3),
    Row("copies_growth", "memory that 1,000 times 1,000 small copies add, after as many", "MiB", target=1),
    Row("import", "import, in a fresh process", "ms", target=60),
    Row("import_first", "import and the first stream", "ms"),
    Row("wheel", "wheel", "MiB", target=6),
)


def number(value: float) -> str:
    """Return three digits of a number."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    if value >= 1e4:
        return f"{value / 1e3:.3g} k"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
