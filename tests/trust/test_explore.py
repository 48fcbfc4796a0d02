"""`halstream.testing.explore`: a function under many schedules, and what is said when it fails."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import re
import unittest
import weakref
from collections.abc import Iterator
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _native
from halstream._core import _current
from halstream._schedules.block import schedule, settle
from halstream._schedules.explore import explore
from halstream.testing import Gate
from halstream.torch import cuda

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]


@pytest.fixture(autouse=True)
def parallel() -> Iterator[None]:
    """Nothing of an exploration may be left after a test."""
    frozen = gc.get_freeze_count()  # CPython 3.12 freezes some objects itself
    yield
    settle(drop=True)
    assert _native.schedule_get() == "parallel"
    assert gc.isenabled()
    assert gc.get_freeze_count() <= frozen


def pipeline(wait: bool) -> None:
    """Copy to the device on one stream, add on another, copy back."""
    copies, compute = hs.Stream(), hs.Stream()
    source, result = hs.pinned_empty(64, dtype=np.int32), hs.pinned_empty(64, dtype=np.int32)
    source[:] = 1
    on_device = hs.empty(64, dtype=np.int32)  # a run finds nothing of the last one's in it
    on_device.copy_from(source, copies)
    if wait:
        compute.wait(copies.record())
    compute.call(np.add, on_device, 1, on_device, writes=[on_device])
    on_device.copy_to(result, compute)
    compute.synchronize()
    copies.synchronize()
    assert result[0] == 2


def lines_of(function: Any, *texts: str) -> list[int]:
    """Return the numbers of the lines of a function that have these texts."""
    import inspect

    lines, start = inspect.getsourcelines(function)
    return [next(start + i for i, line in enumerate(lines) if text in line) for text in texts]


def shown(exc: BaseException) -> str:
    """Return what Python shows of an exception: message and notes."""
    return "\n".join([str(exc), *getattr(exc, "__notes__", [])])


def token_in(text: str) -> str:
    found = re.search(r"halstream\.testing\.schedule\('(hs1-[^']+)'\)", text)
    assert found, text
    return found[1]


def test_a_program_that_is_right_passes_under_all() -> None:
    explored = explore(lambda: pipeline(wait=True), schedules=100)
    assert explored.schedules == 100
    assert explored.streams == 2


def test_a_missing_wait_is_found_and_explained_with_its_lines() -> None:
    with pytest.raises(AssertionError) as caught:
        explore(lambda: pipeline(wait=False))
    text = shown(caught.value)
    copy, call = lines_of(pipeline, "copy_from", "compute.call")
    sentence = re.search("It fails when (.*) runs before (.*): nothing orders them", text)
    assert sentence, text
    assert sentence[1].startswith("the call")
    assert sentence[1].endswith(f"test_explore.py:{call}")
    assert sentence[2].startswith("the copy of 256 bytes")
    assert sentence[2].endswith(f"test_explore.py:{copy}")
    assert "1 operation is held" in text
    assert "on_device.copy_from(source, copies)" in text


def test_the_token_of_a_failure_replays_it_every_time() -> None:
    with pytest.raises(AssertionError) as caught:
        explore(lambda: pipeline(wait=False))
    token = token_in(shown(caught.value))
    assert len(token) < 50
    for _ in range(100):
        with pytest.raises(AssertionError), schedule(token):
            pipeline(wait=False)


def test_the_exception_is_the_functions_own_with_its_traceback() -> None:
    class Own(Exception):
        pass

    def function() -> None:
        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(seen.append, 1)
        two.call(seen.append, 2)
        hs.synchronize()
        if seen != [1, 2]:
            raise Own(seen)

    with pytest.raises(Own) as caught:
        explore(function)
    assert str(caught.value).startswith("[2, 1]")
    assert caught.traceback[-1].name == "function"


def test_a_host_that_reads_too_early_is_explained() -> None:
    def function() -> None:
        stream = hs.Stream()
        source, result = hs.pinned_empty(64, dtype=np.int32), hs.pinned_empty(64, dtype=np.int32)
        source[:] = 3
        result[:] = 0
        on_device = hs.empty(64, dtype=np.int32)
        on_device.copy_from(source, stream)
        on_device.copy_to(result, stream)
        assert result[0] == 3

    with pytest.raises(AssertionError) as caught:
        explore(function)
    text = shown(caught.value)
    # Nothing happens between the copy and the assertion, so there is no hold to name.
    assert "Fails under schedule" in text
    with pytest.raises(AssertionError), schedule(token_in(text)):
        function()


def test_a_program_without_streams_is_called_once() -> None:
    calls: list[int] = []
    explored = explore(lambda: calls.append(1))
    assert calls == [1]
    assert (explored.schedules, explored.streams, explored.steps) == (1, 0, 0)


def test_a_failure_without_streams_is_just_raised() -> None:
    with pytest.raises(LookupError) as caught:
        explore(lambda: {}["missing"])
    assert shown(caught.value) == "'missing'"


def test_a_failure_under_fifo_is_explained_without_another_order() -> None:
    def function() -> None:
        hs.Stream().nop()
        raise LookupError("always")

    with pytest.raises(LookupError) as caught:
        explore(function)
    assert "It fails under fifo" in shown(caught.value)


def test_a_function_that_differs_from_run_to_run_is_reported() -> None:
    runs = itertools.count()

    def function() -> None:
        stream = hs.Stream()
        for _ in range(next(runs) % 2 + 1):
            stream.nop()
        raise LookupError("sometimes")

    with pytest.raises(hs.NondeterminismError, match=r"not deterministic by itself.*call 2") as caught:
        explore(function)
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_failure_that_does_not_repeat_is_reported_as_chance() -> None:
    runs = itertools.count()

    def function() -> None:
        hs.Stream().nop()
        assert next(runs) != 7

    with pytest.raises(hs.NondeterminismError, match=r"one run failed with AssertionError.*and the other passed"):
        explore(function)


def test_equal_arguments_give_equal_schedules() -> None:
    def orders(seed: int) -> list[list[int]]:
        found: list[list[int]] = []

        def function() -> None:
            streams = [hs.Stream() for _ in range(4)]
            seen: list[int] = []
            for number in range(12):
                streams[number % 4].call(seen.append, number)
            hs.synchronize()
            found.append(seen)

        explore(function, schedules=20, seed=seed)
        return found

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)


def test_skips_and_ctrl_c_end_it() -> None:
    for exception in (unittest.SkipTest, KeyboardInterrupt, pytest.skip.Exception):
        runs = itertools.count()

        def function(exception: Any = exception, runs: Iterator[int] = runs) -> None:
            hs.Stream().nop()
            if next(runs) == 3:
                raise exception("enough")

        with pytest.raises(exception):
            explore(function)
        assert next(runs) == 4


def test_a_failure_of_pytest_is_one() -> None:
    def function() -> None:
        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(seen.append, 1)
        two.call(seen.append, 2)
        hs.synchronize()
        if seen != [1, 2]:
            pytest.fail("out of order")

    with pytest.raises(pytest.fail.Exception, match="out of order"):
        explore(function)


@pytest.mark.parametrize("schedules", [0, -1, 100_001])
def test_a_budget_of_nothing_is_refused(schedules: int) -> None:
    with pytest.raises(hs.ScheduleError, match=f"schedules is {schedules}; give 1 to 100000"):
        explore(lambda: pytest.fail("must not run"), schedules=schedules)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a function, not str"):
        explore("program")  # type: ignore[arg-type]

    async def main() -> None:
        pass

    with pytest.raises(TypeError, match=r"give lambda: asyncio\.run"):
        explore(main)


def test_programs_of_asyncio_are_explored() -> None:
    async def main() -> None:
        one, two, seen = hs.Stream(), hs.Stream(), []

        async def use(stream: hs.Stream, value: int) -> None:
            stream.call(seen.append, value)
            await asyncio.sleep(0)
            stream.synchronize()

        await asyncio.gather(use(two, 2), use(one, 1))
        assert seen == [2, 1]

    with pytest.raises(AssertionError) as caught:
        explore(lambda: asyncio.run(main()))
    assert "hs1-holds-" in shown(caught.value)


def test_pending_work_is_refused(hold: Any) -> None:
    hold(hs.Stream())
    with pytest.raises(hs.NotReadyError, match="pending"):
        explore(lambda: None)


def test_what_one_run_leaves_does_not_reach_the_next() -> None:
    gates: list[Gate] = []

    def function() -> None:
        stream, other = hs.Stream(), hs.Stream()
        gates.append(Gate(stream))  # stays closed
        stream.nop()
        other.nop()
        assert not stream.query()
        raise LookupError("with a gate closed")

    with pytest.raises(LookupError) as caught:
        explore(function)
    assert "under fifo" in shown(caught.value)


def test_current_streams_and_devices_are_as_before_in_each_run() -> None:
    seen: list[Any] = []

    def function() -> None:
        seen.append((hs.current_stream().index, cuda.current_device()))
        stream = cuda.Stream()
        cuda.set_stream(stream)
        cuda.set_device(1)
        stream.synchronize()

    try:
        explore(function, schedules=5)
    finally:
        _current.reset()
    assert seen == [(0, 0)] * 5


def test_pooled_streams_are_given_out_alike_in_each_run() -> None:
    kept = cuda.Stream()
    seen: list[list[bool]] = []

    def function() -> None:
        streams = [cuda.Stream() for _ in range(3)]
        streams[0].record_event()
        seen.append([stream == kept for stream in streams])
        streams[0].synchronize()

    explore(function, schedules=40)  # more runs than the ring has streams
    assert seen == [[False] * 3] * 40


def test_what_a_run_leaves_in_cycles_is_collected_before_the_next() -> None:
    class Node:
        pass

    alive: list[weakref.ref[Node]] = []

    def function() -> None:
        assert all(ref() is None for ref in alive)
        node = Node()
        node.own, node.stream = node, hs.Stream()  # type: ignore[attr-defined]
        node.stream.nop()  # type: ignore[attr-defined]
        alive.append(weakref.ref(node))

    explore(function, schedules=5)
    assert len(alive) == 5


def test_a_deep_fault_is_found_within_the_bound_of_pct() -> None:
    """With n streams and k steps a fault of depth 2 shows in at least 1 of n*k schedules of pct."""

    def failing(spec: str) -> bool:
        state = {"ready": False, "seen": True}
        with schedule(spec) as run:
            one, two = hs.Stream(), hs.Stream()
            for number in range(4):
                one.call(lambda number=number: number == 2 and state.update(ready=True))
            for number in range(4):
                two.call(lambda number=number: number == 1 and state.update(seen=state["ready"]))
            hs.synchronize()
        steps.append(run.steps)
        return not state["seen"]

    steps: list[int] = []
    failing("fifo")
    tries = 400
    hits = sum(failing(f"pct {random.Random(seed).randrange(2**31)} 2 {steps[0]}") for seed in range(tries))
    assert hits / tries >= 1 / (3 * steps[0])


def test_the_sanitizer_looks_at_every_run() -> None:
    def function(wait: bool) -> None:
        one, two, memory = hs.Stream(), hs.Stream(), hs.empty(16)
        memory.fill(1, one)
        if wait:
            two.wait(one.record())
        memory.fill(2, two)
        hs.synchronize()

    assert explore(lambda: function(wait=True), schedules=10, sanitize=True).schedules == 10
    assert explore(lambda: function(wait=False), schedules=10).schedules == 10  # it checks nothing itself
    with pytest.raises(hs.UnorderedAccessError, match="nothing orders them") as caught:
        explore(lambda: function(wait=False), schedules=10, sanitize=True)
    # One run says it all, so no other order is looked for.
    assert "the first tried" in shown(caught.value)
    assert "no other order is needed" in shown(caught.value)


def test_a_hold_until_a_call_of_the_host_names_its_line() -> None:
    def function() -> None:
        stream = hs.Stream()
        source, result = hs.pinned_empty(64, dtype=np.int32), hs.pinned_empty(64, dtype=np.int32)
        source[:] = 1
        on_device = hs.empty(64, dtype=np.int32)
        on_device.copy_from(source, stream)
        source[:] = 2  # the copy may not have run
        on_device.copy_to(result, stream)
        stream.synchronize()
        assert result[0] == 1

    with pytest.raises(AssertionError) as caught:
        explore(function)
    text = shown(caught.value)
    copy, back = lines_of(function, "copy_from", "copy_to")
    assert re.search(f"the copy of 256 bytes on stream 1 \\(stream\\) at .*:{copy} has not run before the host's", text)
    assert re.search(f"copy of 256 bytes at .*:{back}: nothing makes the host wait", text)
