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
            words.append(f"≤ 1/{round(1 / self.share)} of the best")
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
