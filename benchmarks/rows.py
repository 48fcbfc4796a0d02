"""The rows of the table and what each should reach."""

from __future__ import annotations

from dataclasses import dataclass

#: Peers whose worker runs while the caller goes on: the others' hand-over only appends to a list.
BESIDE = ("intel", "pocl", "iree")
ASYNCIO, THREAD = ("asyncio_loop",), ("thread_queue",)
ALL = (*BESIDE, *ASYNCIO, *THREAD)
COPYING = (*BESIDE, *THREAD)  # peers that copy


@dataclass(frozen=True)
class Row:
    """A row: what is measured, its unit, and its targets.

    `target` bounds the figure, `share` bounds its ratio to the best peer. A peer
    that has no figure of this name takes part with that of the row `of`: it knows no
    difference between the two.
    """

    name: str
    title: str
    unit: str = "µs"
    target: float | None = None
    share: float | None = None
    against: tuple[str, ...] = ALL
    more: bool = False  # more is better
    of: str = ""

    @property
    def limits(self) -> str:
        """The targets in words."""
        words = []
        if self.target is not None:
            words.append(f"{'≥' if self.more else '≤'} {number(self.target)}")
        if self.share is not None:
            whole = round(1 / self.share)
            exact = whole > 1 and abs(1 / self.share - whole) < 1e-6
            part = f"1/{whole} of" if exact else f"{number(1 / self.share if self.more else self.share)} times"
            words.append(f"{'≥' if self.more else '≤'} {part} {self.rival}")
        return ", ".join(words)

    @property
    def rival(self) -> str:
        """Whose figure the ratio is to, in words."""
        return {THREAD: "thread + queue", ASYNCIO: "asyncio"}.get(self.against, "the best")

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
    Row("record_new", "record of a fresh event, `record_event()`, on an idle stream ⁴", share=1.0, of="record"),
    Row("record_new_reused", "the same ÷ with an event that is used again", "x", target=2.0),
    Row("record_new_busy", "the same on a stream with work"),
    Row("nop", "enqueue of an empty operation ¹", target=0.45, share=0.5, against=BESIDE),
    Row("query", "query of a finished event", target=0.30, share=0.5, against=ASYNCIO),
    Row("query_builtin", "the same ÷ a call of an empty built-in method ⁵", "x", target=1.5),
    Row("query_idle_builtin", "query of an idle stream ÷ a call of an empty built-in method ⁵", "x", target=1.5),
    Row("sync_idle", "synchronize of an idle stream", target=0.30),
    Row("sync_idle_builtin", "the same ÷ a call of an empty built-in method ⁵", "x", target=2.0),
    Row("round_trip", "enqueue + synchronize, empty operation: median", target=1.2, share=0.5),
    Row("round_trip_floor", "the same, woken ³ ÷ two threads of C, there and back", "x", target=1.5),
    Row("round_trip_p99", "the same: 99th percentile", target=10),
    Row("idle_cpu", "processor time in 5 ms of idleness after it"),
    Row("handoff", "empty operation, the host polls until it is done"),
    Row("handoff_floor", "the same, woken ³ ÷ a thread of C", "x"),
    Row("cross", "operation on A, event, B waits, synchronize B", target=3, share=0.25),
    Row("cross_new", "the same with a fresh event", share=0.25, of="cross"),
    Row("hop", "1,000 hops between two streams, per hop: submit and run", target=0.5),
    Row("hop_new", "the same with a fresh event for each hop", share=1 / 3, of="hop"),
    Row("hop_run", "the same behind a gate, per hop: run", target=0.5),
    Row("functions_rate", "Python functions on one stream", "per second", 400_000, 1 / 0.6, THREAD, more=True),
    Row("functions_asyncio", "the same", "per second", share=1.0, against=ASYNCIO, more=True, of="functions_rate"),
    Row("function_delay", "Python function: enqueue to run", target=25, share=1.0, against=THREAD),
    Row("function_lock", "Python function that releases a lock for which the caller waits", share=1.0, against=THREAD),
    Row("stream1_rate", "100,000 empty operations through one stream", "per second", None, 1 / 1.5, ASYNCIO, more=True),
    Row("stream1_batches", "the same, submitted in batches", "per second", None, 1.0, THREAD, True, "stream1_rate"),
    Row("streams8_rate", "empty operations over 8 streams", "per second", target=1_800_000, more=True),
    Row("pending_bytes", "one of 1,000,000 pending operations ²", "bytes", target=64),
    Row("event_bytes", "one of 100,000 events, less its Python object", "bytes", target=96),
    Row("with_stream", "`with stream:`", target=0.5),
    Row("with_cuda_stream", "`with cuda.stream(s):`, which makes an object", target=0.8),
    Row("busy_record_median", "record beside a computing thread ÷ quiet: median", "x", target=1.5),
    Row("busy_record_mean", "the same: mean", "x", target=2.5),
    Row("busy_nop_median", "enqueue beside a computing thread ÷ quiet: median", "x", target=1.5),
    Row("busy_nop_mean", "the same: mean", "x", target=2.5),
    Row("many_threads", "threads that 10,000 idle streams add", "", target=0),
    Row("many_goroutines", "goroutines that they add", "", target=0),
    Row("many_bytes", "one of 10,000 idle streams, less its Python objects", "bytes", target=600),
    Row("many_bytes_object", "the same with its Python objects", "bytes"),
    Row("many_each", "an operation on each of them ÷ as many on one stream", "x", target=1.5),
    Row("many_beside", "operations on one stream beside them ÷ alone", "x", target=1.5),
    Row("many_legacy_each", "blocking ones in turn with the default stream ÷ one in turn with it", "x", target=1.5),
    Row("many_legacy_beside", "the default stream beside 10,000 blocking ones ÷ beside one", "x", target=1.5),
    Row("copy_4m", "copy of 4 MB from pinned memory, and synchronize", share=1 / 1.2, against=BESIDE),
    Row("copy_4m_numpy", "the same ÷ NumPy's copy of its own arrays", "x", 1 / 1.2, 1.0, COPYING),
    Row("copy_64m", "copy of 64 MB from pinned memory, and synchronize", share=1.0, against=BESIDE),
    Row("copy_64m_numpy", "the same ÷ NumPy's copy of its own arrays", "x", 1 / 1.1, 1.0, COPYING),
    Row("handover_64m", "handing over a copy of 64 MB to an idle stream", share=1.0, against=COPYING),
    Row("handover_busy", "the same, to a stream with work"),
    Row("copy_1k", "enqueue of a copy of 1 KiB", target=0.8, against=BESIDE),
    Row("copy_1k_array", "the same by `Array.copy_from`", target=1.5),
    Row("pool", "allocate 4 KiB in stream order, and free it", target=0.8),
    Row("pool_object", "the same as an object, `PooledMemory`", target=0.8),
    Row("pool_held", "the same while 100,000 blocks are held ÷ while none is", "x", target=1.2),
    Row("native", "native function: enqueue + synchronize (peers: a kernel)", share=1.0),
    Row("call_arrays", "Python functions on two arrays", "per second", target=100_000, more=True),
    Row("record_copying", "record while every engine copies 64 MB ÷ quiet", "x", target=3),
    Row("dlpack", "DLPack export", target=3),
    Row("copies_growth", "memory that 1,000 times 1,000 small copies add, after as many", "MiB", target=1),
    Row("graph_launch", "100 empty operations enqueued one by one ÷ one launch of a graph of them", "x", 5, more=True),
    Row(
        "graph_chain",
        "graph of 1,000 fills of a word in a chain, launch to end, per node",
        target=0.15,
    ),
    Row(
        "graph_native",
        "graph of 20 native functions over 4 branches, launch + synchronize (OpenCL: kernels, IREE: fills)",
        share=1.0,
        against=BESIDE,
    ),
    Row("graph_capture_empty", "begin and end of a capture without work"),
    Row("graph_capture", "capture of 1,000 empty operations ÷ enqueueing them", "x", target=1.5),
    Row("graph_capture_call", "capture of 1,000 Python functions ÷ enqueueing them", "x", target=1.5),
    Row("graph_capture_record", "capture of 1,000 records of new events ÷ enqueueing them", "x", target=1.5),
    Row("graph_capture_wait", "capture of 1,000 records and waits for them ÷ enqueueing them", "x", target=1.5),
    Row("graph_capture_fork", "capture of 1,000 forks and joins by new events ÷ enqueueing them", "x", target=1.5),
    Row("graph_instantiate", "executable of a graph of 10,000 nodes", "ms", target=20),
    Row("graph_instantiate_growth", "the same, per node ÷ with 1,000 nodes", "x", target=1.5),
    Row("await_done", "`await` of an event that is done", "per second", target=100_000, more=True),
    Row(
        "await_rate",
        "10,000 tasks that `await` pending events: made, suspended, ended",
        "per second",
        target=100_000,
        against=ASYNCIO,
        more=True,
    ),
    Row("await_turn", "Python function on a stream, and `await` of the stream"),
    Row("import", "import, in a fresh process", "ms", target=25),
    Row("import_first", "import and the first stream", "ms"),
    Row("wheel", "wheel", "MiB", target=2),
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
