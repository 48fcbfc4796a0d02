"""The functions of halstream.h, on threads of all kinds."""

from __future__ import annotations

import ctypes
import gc
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import capi_help
import halstream as hs
import pytest
from halstream import _native
from halstream._schedules.block import schedule

LIMIT = 10.0
NS = 1_000_000_000
OK = (0, "")
TIMEOUT, CLOSED, FAILED = 1, 3, 10

pytestmark = pytest.mark.usefixtures("backend")

NAMES = re.findall(r"\bCASE\((\w+)\)[,;]", (capi_help.HERE / "cases.c").read_text(encoding="utf-8"))
EXACT = pytest.mark.needs("exact-memory")


def test_all_cases_are_known(cases: Any) -> None:
    assert cases.names() == NAMES
    assert len(NAMES) > 10


@pytest.mark.parametrize("how", ["locked", "unlocked", "foreign"])
@pytest.mark.parametrize("name", [pytest.param(n, marks=EXACT) if n.startswith("C8_") else n for n in NAMES])
def test_C1_every_case_passes_on_every_kind_of_thread(cases: Any, name: str, how: str) -> None:
    gc.collect()
    hs.synchronize(0, timeout=LIMIT)
    assert cases.run(name, how) == ""


@pytest.mark.needs("graphs")
def test_C10_a_captured_function_runs_in_each_launch(cases: Any) -> None:
    s, other = hs.Stream(), hs.Stream()
    assert cases.capture_of(s._id) == 0
    runs, releases = cases.counts()
    with hs.capture(s) as graph:
        number = cases.capture_of(s._id)
        assert number != 0
        assert cases.capture_of(other._id) == 0
        assert cases.enqueue(s._id, "captured", 0, []) == OK
    assert cases.capture_of(s._id) == 0
    run = graph.instantiate()
    for _ in range(3):
        run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert cases.counts() == (runs + 3, releases)
    del graph, run
    gc.collect()
    hs.Graph()  # a new graph closes those that were collected, and a thread of the runtime releases what they kept
    until = time.monotonic() + LIMIT
    while cases.counts()[1] == releases and time.monotonic() < until:
        time.sleep(0.001)
    assert cases.counts() == (runs + 3, releases + 1)


@pytest.mark.needs("schedules")
@pytest.mark.parametrize("how", ["locked", "unlocked", "foreign"])
@pytest.mark.parametrize("name", ["S1_functions_run_in_order", "C2_a_function_that_fails", "C3_releases"])
@pytest.mark.parametrize("spec", ["fifo", "latest"])
def test_C1_cases_pass_under_a_schedule(cases: Any, spec: str, name: str, how: str) -> None:
    with schedule(spec):
        assert cases.run(name, how) == ""


def test_C1_threads_that_python_does_not_know_leave_nothing(cases: Any) -> None:
    assert cases.many(8, 1) == 8
    live, threads = _native.live(), _native.threads()
    for _ in range(4):
        assert cases.many(8, 200) == 1600
    assert _native.live() == live
    # The slots of threads that ended go to the next ones, which may begin before others have ended.
    assert _native.threads() <= threads + 8


def test_C2_pythons_synchronize_raises_the_error(cases: Any) -> None:
    stream = hs.Stream(non_blocking=True)
    assert cases.enqueue_failing(stream._id) == OK
    with pytest.raises(hs.HostFunctionError, match="test::op: the shape is wrong"):
        stream.synchronize(timeout=LIMIT)
    stream.synchronize(timeout=LIMIT)
    assert cases.enqueue_failing(stream._id) == OK
    assert cases.synchronize(stream._id, -1) == (FAILED, "test::op: the shape is wrong")
    assert cases.synchronize(stream._id, -1) == OK


@pytest.mark.needs("abort")
def test_C3_what_an_abort_drops_is_released(cases: Any, hold: Callable[[Any], Any]) -> None:
    stream = hs.Stream(non_blocking=True)
    gate = hold(stream)
    runs, releases = cases.counts()
    for _ in range(5):
        assert cases.enqueue(stream._id, None, 0, []) == OK
    assert _native.stream_abort(stream._id) >= 5
    end = time.monotonic() + LIMIT
    while cases.counts()[1] < releases + 5 and time.monotonic() < end:
        time.sleep(0.001)  # the releases run on another thread
    assert cases.counts() == (runs, releases + 5)
    gate.open()
    stream.synchronize(timeout=LIMIT)
    assert cases.counts() == (runs, releases + 5)


def test_C5_numbers_are_those_of_pythons_objects(cases: Any) -> None:
    stream = hs.Stream(non_blocking=True)
    gate = cases.new_gate(stream._id)
    assert not stream.query()
    assert cases.synchronize(stream._id, 1000)[0] == TIMEOUT
    assert cases.open_gate(gate) == OK
    stream.synchronize(timeout=LIMIT)
    assert cases.synchronize(stream._id, -1) == OK
    number = stream._id
    stream.close()
    assert cases.synchronize(number, -1) == (CLOSED, "synchronize: the stream is closed; create a new one")


def test_C5_python_sees_records_that_c_made_without_the_core(cases: Any, hold: Callable[[Any], Any]) -> None:
    stream, other = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    event = cases.new_event(stream._id)
    assert _native.event_was_recorded(event) == 1
    stream.synchronize(timeout=LIMIT)
    assert _native.event_query(event) == 1
    gate = hold(other)
    _native.stream_record(other._id, event)
    assert _native.event_query(event) == 0
    gate.open()
    other.synchronize(timeout=LIMIT)
    assert _native.event_query(event) == 1
    _native.close(event)


def test_C5_a_change_of_the_backend_changes_the_generation(child: Callable[..., Any], cases_file: Path) -> None:
    done = child(
        f"""
        import sys
        sys.path.insert(0, {str(cases_file.parent)!r})
        import capi_cases as cases, halstream as hs
        assert cases.use(hs.get_api()) == 1
        before, stream = cases.generation(), hs.Stream()
        number = stream._id
        assert cases.synchronize(number, -1) == (0, "")
        stream.close()
        hs.use_backend("host")
        assert cases.generation() > before
        assert cases.synchronize(number, -1)[0] == 3
        assert cases.synchronize(hs.Stream()._id, -1) == (0, "")
        print("seen")
        """
    )
    assert (done.returncode, done.stdout.strip()) == (0, "seen"), done.stderr


def test_C7_a_wait_lets_other_threads_of_python_run(cases: Any) -> None:
    stream = hs.Stream(non_blocking=True)
    gate = cases.new_gate(stream._id)
    waits = threading.Event()

    def open_it() -> None:
        assert waits.wait(LIMIT)
        assert cases.open_gate(gate) == OK

    thread = threading.Thread(target=open_it)
    thread.start()
    waits.set()
    try:
        assert cases.synchronize(stream._id, int(LIMIT * NS)) == OK
    finally:
        cases.open_gate(gate)
        thread.join(LIMIT)


def test_C7_a_limit_names_what_is_pending(cases: Any, hold: Callable[[Any], Any]) -> None:
    stream = hs.Stream(non_blocking=True)
    hold(stream)
    code, text = cases.synchronize(stream._id, 1_000_000)
    assert code == TIMEOUT
    assert f"stream {stream.index}" in text


@pytest.mark.needs("reasons")
def test_C7_a_limit_names_the_function_that_runs(cases: Any) -> None:
    stream = hs.Stream(non_blocking=True)
    assert cases.enqueue_blocking(stream._id) == OK
    try:
        code, text = cases.synchronize(stream._id, 1_000_000)
        assert code == TIMEOUT
        assert "first is test::block" in text
        with pytest.raises(hs.WaitTimeoutError, match="test::block"):
            stream.synchronize(timeout=0.001)
    finally:
        cases.unblock()
    stream.synchronize(timeout=LIMIT)


def test_C8_blocks_belong_to_the_figures_of_the_device(cases: Any) -> None:
    assert (
        cases.run("C8_blocks_of_streams" if hs.backend() == "host" else "M3_copies_and_kinds_of_memory", "locked") == ""
    )


def test_C9_a_newer_table_is_not_given_out(cases: Any) -> None:
    library = ctypes.PyDLL(_native.extension().__file__)
    get = library.halstream_get_api
    get.restype = ctypes.c_void_p
    assert get(1)
    assert get(2) is None
    assert get(0) is None


def test_the_header_compiles_as_cpp(tmp_path: Path) -> None:
    source = tmp_path / "only.cpp"
    source.write_text(
        '#include <halstream.h>\nstatic_assert(sizeof(halstream_range) == 40, "");\n'
        "int main() { const halstream_api *api = nullptr; return api == nullptr ? 0 : 1; }\n"
    )
    capi_help.build(source, tmp_path / "only")
