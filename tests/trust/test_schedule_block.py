"""`halstream.testing.schedule`: a block under a schedule, and nothing of it left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream import _native
from halstream._schedules.block import add_note, schedule, settle
from halstream._schedules.token import Token
from halstream.cupy import cuda
from halstream.testing import Gate, explore

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

SCHEDULES = ["fifo", "earliest", "latest", "random 5", "pct 7 3 40", "starve 1", "holds 1.1>2.1"]


@pytest.fixture(autouse=True)
def parallel() -> Iterator[None]:
    """Nothing of a schedule may be left after a test."""
    yield
    settle(drop=True)
    if (left := _native.schedule_get()) != "parallel":
        _native.schedule_set("parallel")
        pytest.fail(f"the schedule {left} was left in force")


def unordered() -> list[int]:
    """Two streams and two functions, which nothing orders; what came first comes first."""
    one, two, seen = hs.Stream(), hs.Stream(), []
    one.call(seen.append, 1)
    two.call(seen.append, 2)
    two.synchronize()
    one.synchronize()
    return seen


def test_the_order_is_the_schedules() -> None:
    with schedule("fifo"):
        assert unordered() == [1, 2]
    with schedule("latest"):
        assert unordered() == [2, 1]
    with schedule("starve(1)"):
        assert unordered() == [2, 1]
    with schedule("holds 1.1>2.1"):
        assert unordered() == [2, 1]


@pytest.mark.parametrize("spec", SCHEDULES)
def test_a_token_replays_what_ran(spec: str) -> None:
    with schedule(spec) as first:
        order = unordered()
    for _ in range(20):
        with schedule(str(first.token)) as again:
            assert unordered() == order
        assert again.order == first.order
        assert again.token == first.token
        assert again.steps == first.steps


def test_a_token_replays_in_another_process() -> None:
    with schedule("pct(11, 3)") as first:
        order = unordered()
    program = f"""
import sys
import threading
import time
sys.path.insert(0, {str(__file__).rpartition("/")[0]!r})
from halstream._schedules.block import schedule
from test_schedule_block import unordered
with schedule({str(first.token)!r}) as run:
    print(unordered(), run.order)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == f"{order} {first.order}", done.stderr


def test_token_order_and_steps_can_be_read_inside_and_after() -> None:
    with schedule("fifo") as run:
        assert run.steps == 0
        assert run.order == ()
        stream = hs.Stream()
        stream.nop()
        inside = run.token
        assert run.order == ("h1", "1.1")
    assert run.token == inside
    assert run.order == ("h1", "1.1")
    assert run.steps == 2
    assert _native.schedule_get() == "parallel"


def test_before_the_block_there_is_nothing_to_read() -> None:
    run = schedule("fifo")
    with pytest.raises(RuntimeError, match="has not begun"):
        _ = run.token


def test_a_schedule_is_for_one_block() -> None:
    run = schedule("fifo")
    with run:
        pass
    with pytest.raises(RuntimeError, match="used for one block"):
        run.__enter__()


def test_a_token_of_a_program_that_changed_is_stale() -> None:
    with schedule("latest") as run:
        unordered()
    with pytest.raises(hs.ScheduleError, match="is stale: the program's operations changed"), schedule(run.token):
        unordered()
        hs.Stream().nop()


def test_a_stale_token_does_not_hide_what_the_block_raised() -> None:
    with schedule("latest") as run:
        unordered()
    with pytest.raises(LookupError) as caught, schedule(run.token):
        raise LookupError("the block's own")
    shown = [*map(str, caught.value.args), *getattr(caught.value, "__notes__", [])]
    assert shown[0].startswith("the block's own")
    assert "is stale" in "\n".join(shown)


@pytest.mark.parametrize("what", ["fastest", "random", "hs1-fifo-00000000-00", "hs9-fifo-00000000-00", "hs1"])
def test_what_is_no_schedule_is_refused_before_the_block(what: str) -> None:
    with pytest.raises(hs.ScheduleError):
        schedule(what)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a str or a Token, not int"):
        schedule(7)  # type: ignore[arg-type]


def test_pending_work_is_refused_and_named(hold: Callable[[Any], Any]) -> None:
    stream = hs.Stream()
    gate = hold(stream)
    with pytest.raises(hs.NotReadyError, match=r"pending.*gate"), schedule("fifo"):
        pytest.fail("the block must not run")
    gate.open()
    stream.synchronize(timeout=10)
    with schedule("fifo"):
        pass


def test_the_backend_is_named_where_there_are_no_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(spec: str) -> int:
        raise hs.NotSupportedError("set schedule: no")

    monkeypatch.setattr(_native, "schedule_set", refuse)
    monkeypatch.setattr(_native, "backend", lambda: "cuda")
    with pytest.raises(hs.NotSupportedError, match=r"host device.*'cuda'.*HALSTREAM_BACKEND=host.*sanitizer"):
        schedule("fifo").__enter__()


def test_nested_blocks_are_runs_of_their_own() -> None:
    with schedule("latest") as outer:
        assert unordered() == [2, 1]
        with schedule("fifo") as inner:
            assert unordered() == [1, 2]
        assert _native.schedule_get() == "latest"
        assert unordered() == [2, 1]
    assert inner.token.kind == "fifo"
    assert outer.token.kind == "latest"
    assert outer.order[0] == "h1"


def test_work_left_at_the_end_still_runs() -> None:
    seen: list[int] = []
    with schedule("latest") as run:
        hs.Stream().call(seen.append, 1)
        assert seen == []
    assert seen == [1]
    assert run.order == ("h1", "1.1")
    assert run.steps == 1  # what ran after the block is no step of it


def test_work_left_by_a_block_that_raises_is_dropped() -> None:
    seen: list[int] = []
    with pytest.raises(LookupError), schedule("latest"):
        stream = hs.Stream()
        stream.call(seen.append, 1)
        raise LookupError
    assert seen == []
    assert stream.query()
    with schedule("fifo"):
        assert unordered() == [1, 2]


def test_a_closed_gate_does_not_outlive_a_block_that_raises() -> None:
    with pytest.raises(LookupError), schedule("fifo"):
        stream = hs.Stream()
        gate = Gate(stream)
        stream.nop()
        assert not stream.query()
        raise LookupError
    assert stream.query()
    assert not gate.opened
    with schedule("fifo"):
        pass


def test_work_that_never_ends_is_an_error_and_dropped() -> None:
    with pytest.raises(hs.HalError, match="gate"):
        block = schedule("fifo")
        with block:
            stream = hs.Stream()
            gate = Gate(stream)
            block.finish(drop=False, limit=0.05)
    assert stream.query()
    assert not gate.opened
    assert _native.schedule_get() == "parallel"


def test_errors_of_default_streams_do_not_reach_the_next_run() -> None:
    def broken() -> None:
        raise ValueError("nobody asks for it")

    with pytest.raises(LookupError), schedule("fifo"):
        hs.current_stream().call_checked(broken)
        raise LookupError
    hs.current_stream().synchronize(timeout=10)


def test_ctrl_c_ends_the_block_and_its_schedule() -> None:
    with pytest.raises(KeyboardInterrupt), schedule("latest"):
        hs.Stream().nop()
        raise KeyboardInterrupt
    assert _native.schedule_get() == "parallel"


def test_the_parameters_of_a_token_reach_the_runtime() -> None:
    token = Token.of("pct 7 3 40", "0123456789abcdef")
    assert token.fingerprint == "01234567"
    with pytest.raises(hs.ScheduleError, match="stale"), schedule(token):
        assert _native.schedule_get() == "pct 7 3 40"


def test_notes_are_shown_where_python_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    class Old(Exception):
        add_note = None  # as in Python 3.10

    class OldKey(Old, KeyError):
        pass

    one, none, two = Old(7), Old(), OldKey("name")
    for exc in (one, none, two):
        add_note(exc, "the note")
    assert str(one) == "7\nthe note"
    assert str(none) == "the note"
    assert two.args == ("name",)
    assert capsys.readouterr().err == "the note\n"


def test_a_token_replays_beside_threads_that_compute() -> None:
    gc.collect()  # gates that other tests left are opened when they are collected
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=compute) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        with schedule("random(3)") as first:
            order = unordered()
        for _ in range(30):
            with schedule(first.token) as again:
                assert unordered() == order
            assert again.order == first.order
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)


def test_what_ended_a_block_is_not_hidden_by_work_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halstream._schedules.block._DROP", 0.01)
    monkeypatch.setenv("HALSTREAM_STALL_S", "0.05")
    release = threading.Event()
    try:
        with pytest.raises(KeyboardInterrupt) as caught, schedule("latest"):
            stream = hs.Stream()
            stream.call(release.wait, 10)
            with pytest.raises(hs.WaitTimeoutError):
                stream.synchronize(timeout=0.2)
            raise KeyboardInterrupt
    finally:
        release.set()
        stream.synchronize()
        _native.schedule_set("parallel")  # it stayed in force, as the note says
    assert "its schedule stays in force" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


@pytest.mark.needs("graphs")
@pytest.mark.parametrize("tool", ["schedule", "schedule and sanitize", "schedule in a capture", "explore", "prove"])
def test_X6_an_exception_is_not_hidden_by_a_capture_that_was_not_ended(tool: str) -> None:
    captures: list[cuda.Stream] = []

    def program() -> None:
        captures.append(stream := cuda.Stream(non_blocking=True))
        stream.begin_capture()
        stream.launch_host_func(print, "never")
        raise ZeroDivisionError("the program's own")

    with pytest.raises(ZeroDivisionError, match="the program's own"):
        if tool == "schedule":
            with schedule("fifo"):
                program()
        elif tool == "schedule and sanitize":
            with schedule("fifo"), hs.sanitize():
                program()
        elif tool == "schedule in a capture":
            with hs.capture(hs.Stream()), schedule("fifo"):
                raise ZeroDivisionError("the program's own")
        else:
            explore(program, prove=10 * (tool == "prove"))
    for stream in captures:
        with pytest.raises(cuda.runtime.CUDARuntimeError, match="Invalidated"):
            stream.end_capture()
    hs.synchronize()
    assert _native.schedule_get() == "parallel"


@pytest.mark.needs("graphs")
def test_X6_a_capture_that_was_not_ended_is_an_error_of_a_block_that_raises_nothing() -> None:
    stream = cuda.Stream(non_blocking=True)
    with pytest.raises(hs.CaptureError, match="end the capture first"), schedule("fifo"):
        stream.begin_capture()
    with pytest.raises(cuda.runtime.CUDARuntimeError, match="Invalidated"):
        stream.end_capture()
    hs.synchronize()
    assert _native.schedule_get() == "parallel"


@pytest.mark.parametrize("spec", ["latest", "random 1"])
def test_ctrl_c_during_a_function_is_raised_unchanged(spec: str) -> None:
    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)

    with pytest.raises(KeyboardInterrupt), schedule(spec):
        stream = hs.Stream()
        stream.call(interrupted)
        stream.synchronize()
