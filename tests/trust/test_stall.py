"""W1: a wait that can never end fails, and its text is the chain of who waits for whom."""

from __future__ import annotations

import functools
import queue
import re
import subprocess
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import halstream as hs
import halstream.cupy.cuda as cupy
import numpy as np
import pytest
from halstream._memory._stream_values import wait_value, write_value
from halstream._native._constants import CONDITION_EQUAL
from halstream._stalls import stall as _stall
from halstream.testing import Gate
from stall_help import LIMIT, Looks, chain, in_thread, looks, place, schedule  # noqa: F401

pytestmark = pytest.mark.needs("stalls")

here = functools.partial(place, __file__)

Child = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.usefixtures("schedule")
def test_W1_a_gate_that_is_never_opened() -> None:
    s = hs.Stream()
    with Gate(s):  # made
        s.nop()
        with pytest.raises(hs.StallError) as exc:
            s.synchronize()  # wait
        chain(
            exc,
            "thread MainThread waits for stream", here("wait"),
            "has 2 operation(s) pending", "gate", "made at " + here("made"),
            "nobody is left who could open it", "Open the gate",
        )  # fmt: skip
    s.synchronize(timeout=LIMIT)


@pytest.mark.usefixtures("schedule")
def test_W1_a_value_that_is_never_written() -> None:
    s, cell = hs.Stream(), hs.zeros(1, np.uint64)
    wait_value(s, cell.ptr, 1, CONDITION_EQUAL)
    with pytest.raises(hs.StallError) as exc:
        s.synchronize()
    chain(exc, "the first is", f"a wait for the value at {cell.ptr:#x}", "nobody is left who could write it")
    other = hs.Stream()
    write_value(other, cell.ptr, 1)
    s.synchronize(timeout=LIMIT)
    other.synchronize(timeout=LIMIT)


@pytest.mark.usefixtures("schedule")
def test_W1_a_gate_on_another_device_behind_an_event() -> None:
    far, near = hs.Stream(1), hs.Stream(0)
    with Gate(far):
        event = far.record()
        near.wait_event(event)
        last = near.record()
        with pytest.raises(hs.StallError) as exc:
            last.synchronize()
        chain(exc, "of device 0", "a wait for event", "of device 1", "gate")


@pytest.mark.usefixtures("schedule")
def test_W1_the_legacy_default_stream_holds_back() -> None:
    held, other = hs.Stream(), hs.Stream()
    with Gate(held):
        hs.Device(0).default_stream.nop()
        other.nop()
        with pytest.raises(hs.StallError) as exc:
            other.synchronize()
        chain(exc, f"stream {other.index} ", "order of the legacy default stream", f"stream {held.index} ", "gate")


def _called(s: hs.Stream, work: Callable[..., Any]) -> None:
    s.call(work)  # called


def _called_with_names(s: hs.Stream, work: Callable[..., Any]) -> None:
    s.call_checked(work, size=1)  # named


def _called_with_others(s: hs.Stream, work: Callable[..., Any]) -> None:
    s.call_many([work, (work, 1)])  # many


def _called_with_memory(s: hs.Stream, work: Callable[..., Any]) -> None:
    s.call(work, hs.zeros(1, stream=s))  # memory


def _called_by_a_dialect(s: hs.Stream, work: Callable[..., Any]) -> None:
    cupy.Stream.from_external(s).launch_host_func(work, 1)  # dialect


@pytest.mark.parametrize(
    ("enqueue", "mark"),
    [(_called, "called"), (_called_with_names, "named"), (_called_with_others, "many"),
     (_called_with_memory, "memory"), (_called_by_a_dialect, "dialect")],
)  # fmt: skip
def test_W1_a_function_that_never_ends_and_the_line_that_enqueued_it(
    enqueue: Callable[[hs.Stream, Callable[..., Any]], None], mark: str
) -> None:
    s, event = hs.Stream(), threading.Event()

    def work(*args: object, **names: object) -> None:
        event.wait()

    s.call(int)
    s.synchronize(timeout=LIMIT)  # from now on functions go the short way
    try:
        enqueue(s, work)
        with pytest.raises(hs.StallError) as exc:
            s.synchronize()
        chain(exc, f"the first is the function {work.__qualname__}", "from " + here(mark), "waits in Event.wait()")
    finally:
        event.set()
        s.synchronize(timeout=LIMIT)


@pytest.mark.usefixtures("schedule")
def test_W1_a_function_that_wants_a_lock_of_the_waiting_thread() -> None:
    s, lock = hs.Stream(), threading.Lock()

    def work() -> None:  # work
        with lock:  # taken
            pass

    with lock:
        s.call(work)
        with pytest.raises(hs.StallError) as exc:
            s.synchronize()
    chain(exc, "the function", "work", here("work"), "waits for a lock that is taken", here("taken"))
    s.synchronize(timeout=LIMIT)


@pytest.mark.usefixtures("schedule")
def test_W1_a_cycle_through_a_lock_with_an_owner_is_reported_while_another_thread_works(looks: Looks) -> None:  # noqa: F811
    s, lock, over = hs.Stream(), threading.RLock(), threading.Event()
    other = in_thread(over.wait, LIMIT)  # it could do anything when its time is over

    def work() -> None:
        with lock:
            pass

    with lock:
        s.call(work)
        with pytest.raises(hs.StallError) as exc:
            s.synchronize()
    over.set()
    other.join(LIMIT)
    chain(exc, "each of these waits for the next", "work", "waits for a lock that thread MainThread holds", "circle")


@pytest.mark.usefixtures("schedule")
def test_W1_a_function_that_joins_the_thread_that_waits_for_it() -> None:
    s, seen = hs.Stream(), queue.SimpleQueue[BaseException]()

    def host() -> None:
        me = threading.current_thread()
        s.call(lambda: me.join())
        try:
            s.synchronize()
        except hs.StallError as exc:
            seen.put(exc)

    thread = in_thread(host)
    text = str(seen.get(timeout=LIMIT))
    thread.join(LIMIT)
    assert f"thread {thread.name} waits for stream" in text
    assert f"waits for the end of thread {thread.name}" in text
    s.synchronize(timeout=LIMIT)


def test_W1_a_cycle_is_reported_while_other_streams_run() -> None:
    stop = threading.Event()
    busy, s, lock = hs.Stream(), hs.Stream(), threading.RLock()

    def keep_busy() -> None:
        while not stop.is_set():
            for _ in range(10):
                busy.delay(0.001)
            busy.synchronize(timeout=LIMIT)

    def work() -> None:
        with lock:
            pass

    other = in_thread(keep_busy)
    try:
        with lock:
            s.call(work)
            with pytest.raises(hs.StallError):
                s.synchronize()
    finally:
        stop.set()
        other.join(LIMIT)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: (e := threading.Event(), e.wait, e.set), "Event.wait()"),
        (lambda: (q := queue.Queue[int](), q.get, lambda: q.put(1)), "Queue.get()"),
        (lambda: (b := threading.Barrier(2), b.wait, b.wait), "Barrier.wait()"),
        (lambda: (m := threading.Semaphore(0), m.acquire, m.release), "Semaphore.acquire()"),
    ],
    ids=["event", "queue", "barrier", "semaphore"],
)
@pytest.mark.usefixtures("schedule")
def test_W1_a_function_that_waits_for_work_after_the_wait(make: Any, name: str) -> None:
    _, wait, let_go = make()
    s = hs.Stream()
    s.call(lambda: wait())
    with pytest.raises(hs.StallError) as exc:
        s.synchronize()
    let_go()
    chain(exc, "waits for stream", "the function", f"waits in {name}", "Give the function what it waits for")
    s.synchronize(timeout=LIMIT)


@pytest.mark.usefixtures("schedule")
def test_W1_two_threads_that_wait_and_a_third_that_joins_them() -> None:
    s = hs.Stream()
    gate = Gate(s)
    texts: list[str] = []

    def host() -> None:
        try:
            s.synchronize()
        except hs.StallError as exc:
            texts.append(str(exc))

    threads = [in_thread(host) for _ in range(2)]
    for thread in threads:
        thread.join()  # without a limit: with one it could still act
    gate.open()
    assert len(texts) == 2
    # The first one knows of the other two.
    assert "thread MainThread waits for the end of" in texts[0]


@pytest.mark.usefixtures("schedule")
def test_W1_the_stall_is_raised_on_the_main_thread_first() -> None:
    s = hs.Stream()
    gate = Gate(s)
    done: list[int] = []

    def host() -> None:
        s.synchronize()  # a StallError would end the test through the threads' hook
        done.append(1)

    thread = in_thread(host)
    with pytest.raises(hs.StallError):
        s.synchronize()
    gate.open()
    thread.join(LIMIT)
    assert done == [1]


def test_W1_slow_garbage_collections_change_nothing_about_who_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now, main, other = [0.0], 1, 2

    def collect() -> int:
        now[0] += 1.5  # as in a process with many objects
        return 0

    monkeypatch.setattr(_stall, "gc", SimpleNamespace(collect=collect))
    monkeypatch.setattr(_stall, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(_stall, "_suspicions", {})
    monkeypatch.setattr(_stall, "_look", lambda me: ("stuck", [main] if me == other else [], []))
    assert _stall._judge(other) == ("", True)
    assert _stall._judge(main) == ("", True)
    now[0] += 0.5
    assert _stall._judge(other) == ("", True)  # 2 s after its first look, and 0.5 s after the main thread's
    assert _stall._judge(main) == ("stuck", False)


@pytest.mark.parametrize("wait", ["device", "copy", "blocking"])
@pytest.mark.usefixtures("schedule")
def test_W1_every_wait_of_the_host_is_watched(wait: str) -> None:
    from halstream.paddle import device as paddle

    s = paddle.Stream(blocking=True) if wait == "blocking" else hs.Stream(0)
    held = hs.Stream(0) if wait == "blocking" else s
    array = hs.zeros(4, dtype=np.float32)
    with Gate(held), pytest.raises(hs.StallError) as exc:
        if wait == "blocking":
            hs.Stream.wait_stream(s, held)
        elif wait == "device":
            hs.synchronize(0)
        else:
            with s:
                array.numpy()
    chain(exc, f"stream {held.index} of device 0", "gate")


def test_W1_dialects_raise_their_own_class() -> None:
    from halstream.cupy import cuda

    s = cuda.Stream()
    with Gate(s), pytest.raises(hs.StallError) as exc:
        s.synchronize()
    assert isinstance(exc.value, cuda.runtime.CUDARuntimeError)


def test_W1_every_thread_for_functions_is_taken(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs
        streams, go = [hs.Stream() for _ in range(3)], threading.Event()
        def first(): go.wait()
        def last(): go.set()
        for s in streams[:2]:
            s.call(first)
        streams[2].call(last)
        try:
            streams[2].synchronize()
        except hs.StallError as exc:
            print(exc)
        go.set()
        streams[2].synchronize(timeout=20)
        """,
        env={"HALSTREAM_HOST_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    words = ["the function last", "all 2 threads for functions are busy", "first", "Event.wait()", "HALSTREAM_HOST"]
    assert re.search(".*".join(map(re.escape, words)), done.stdout, re.DOTALL), done.stdout


@pytest.mark.parametrize("options", [("-n", "1"), ("--timeout=50", "--timeout-method=thread"), ("--timeout=50",)])
def test_W1_threads_and_timers_of_test_tools_do_not_count(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    pytester.makepyfile(
        """
        import halstream as hs

        def test_hangs():
            s = hs.Stream()
            with hs.testing.Gate(s):
                s.synchronize()
        """
    )
    result = pytester.runpytest_subprocess(*options, timeout=LIMIT + 20)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*StallError: this wait can never end*"])


def test_W1_a_thread_that_waits_when_the_program_has_ended(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        def host():
            try:
                s.synchronize()
            except hs.StallError as exc:
                print(exc)
                gate.open()
        threading.Thread(target=host).start()
        """
    )
    assert done.returncode == 0, done.stderr
    assert "gate 1 is closed" in done.stdout


def test_W1_can_be_switched_off(child: Child) -> None:
    done = child(
        """
        import signal, halstream as hs
        from halstream._stalls import stall as _stall
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        def judged(me):
            raise SystemExit("it was looked at")
        _stall._judge = judged
        signal.signal(signal.SIGALRM, lambda *_: gate.open())
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        s.synchronize()
        """,
        env={"HALSTREAM_STALL": "0"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("schedule")
@pytest.mark.needs("graphs")
def test_W6_a_launch_that_never_ends_is_at_a_node_with_its_line() -> None:
    main, side = hs.Stream(), hs.Stream()
    event = threading.Event()
    with hs.capture(main) as graph:
        side.wait(main)
        main.nop()
        side.call(event.wait)  # node
        main.wait(side)
    graph.instantiate().launch(main)
    try:
        with pytest.raises(hs.StallError) as exc:
            main.synchronize()
        chain(exc, "the first is a launch of a graph", "a graph on stream", "the first is", "from " + here("node"))
    finally:
        event.set()
        main.synchronize(timeout=LIMIT)
