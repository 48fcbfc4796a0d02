"""Programs in C on libascendcl.so: what they check is in tests/ascend/programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ascend_help import PROGRAMS, ROOT, Compiled, Run

ways = pytest.mark.parametrize("way", ["c", "c++", "thread", "address"])


def check(run: Run, program: Path, *arguments: str, code: int = 0, **settings: dict[str, str]) -> str:
    """Run a program that says that it is done; return what it wrote to stderr."""
    done = run(program, *arguments, **settings)
    assert (done.returncode, done.stdout) == (code, "done\n"), done.stderr
    return done.stderr


@ways
@pytest.mark.parametrize("name", ["waits", "events", "functions", "orders"])
def test_N3_rules_hold_in_c(compiled: Compiled, run: Run, name: str, way: str) -> None:
    check(run, compiled(PROGRAMS / f"{name}.c", way))


def test_E10_an_event_of_cann_stands_for_the_record_that_either_process_made_last(compiled: Compiled, run: Run) -> None:
    check(run, compiled(PROGRAMS / "processes.c"))


def test_N3_refused_waits_for_a_notify_hold_up_no_others(compiled: Compiled, run: Run) -> None:
    check(run, compiled(PROGRAMS / "notify_refused.c"))


@ways
def test_N20_corners_of_captures_aborts_and_exceptions(compiled: Compiled, run: Run, tmp_path: Path, way: str) -> None:
    check(run, compiled(PROGRAMS / "corners.c", way), str(tmp_path / "model.json"))


@pytest.mark.parametrize("name", ["waits", "events", "functions"])
def test_N3_rules_hold_on_the_look_alike_cuda_driver(compiled: Compiled, run: Run, name: str) -> None:
    driver = ROOT / "build" / "fakecuda" / "libfakecuda.so"
    settings = {"HALSTREAM_BACKEND": "cuda", "HALSTREAM_CUDA_LIBRARY": str(driver)}
    check(run, compiled(PROGRAMS / f"{name}.c"), env=settings)


@ways
def test_N4_handles_outputs_and_texts(compiled: Compiled, run: Run, way: str) -> None:
    check(run, compiled(PROGRAMS / "handles.c", way))


@ways
def test_N5_threads_come_and_end(compiled: Compiled, run: Run, way: str) -> None:
    check(run, compiled(PROGRAMS / "threads.c", way))


@ways
@pytest.mark.parametrize("end", ["fork", "exit", "pending", "callback"])
def test_N6_how_a_program_may_end(compiled: Compiled, run: Run, end: str, way: str) -> None:
    # A search for leaks in a forked child waits for a lock of the allocator, which a thread of the parent may have had.
    leaks = {"ASAN_OPTIONS": "detect_leaks=0"} if end == "fork" else {}
    check(run, compiled(PROGRAMS / "ends.c", way), end, code=7 if end in ("exit", "callback") else 0, env=leaks)


@pytest.mark.parametrize("ordered", [True, False])
def test_N7_threadsanitizer_reports_what_nothing_orders(compiled: Compiled, run: Run, ordered: bool) -> None:
    done = run(compiled(PROGRAMS / "race.c", "thread"), "wait" if ordered else "no wait")
    assert ("WARNING: ThreadSanitizer: data race" in done.stderr) is not ordered, done.stderr
    assert done.stdout == "done\n"


def test_N7_addresssanitizer_reports_a_leak_of_the_program(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "leak.c", "address"))
    assert "Direct leak of 321 byte(s)" in done.stderr, done.stderr
    assert "libascendcl" not in done.stderr


@ways
def test_N14_a_query_is_of_the_latest_record(compiled: Compiled, run: Run, way: str) -> None:
    check(run, compiled(PROGRAMS / "answers.c", way))


@ways
def test_N15_functions_that_follow_each_other(compiled: Compiled, run: Run, way: str) -> None:
    check(run, compiled(PROGRAMS / "following.c", way))


@ways
def test_N15_callbacks_that_follow_each_other(compiled: Compiled, run: Run, way: str) -> None:
    check(run, compiled(PROGRAMS / "callbacks.c", way))


def test_N15_functions_of_an_urgent_stream_come_first(compiled: Compiled, run: Run) -> None:
    check(run, compiled(PROGRAMS / "following.c"), "urgent", env={"HALSTREAM_HOST_THREADS": "1"})


@ways
def test_N19_states_settings_and_what_needs_a_chip(compiled: Compiled, run: Run, way: str) -> None:
    check(run, compiled(PROGRAMS / "states.c", way))


@ways
def test_helpers_need_no_runtime(compiled: Compiled, run: Run, way: str) -> None:
    shown = check(run, compiled(PROGRAMS / "helpers.c", way))
    assert "shown: 42" in shown and "not shown" not in shown


@ways
def test_N9_functions_of_init_and_finalize(compiled: Compiled, run: Run, tmp_path: Path, way: str) -> None:
    settings = tmp_path / "acl.json"
    settings.write_text('{"err_msg_mode": "1"}')
    check(run, compiled(PROGRAMS / "process.c", way), str(settings))


def test_N1_names_with_more_arguments_in_c_plus_plus(compiled: Compiled, run: Run) -> None:
    check(run, compiled(PROGRAMS / "overloads.cc", "c++"))


@pytest.mark.parametrize("way", ["c++", "c++ thread", "c++ address"])
def test_N3_a_program_with_owners_and_a_report_thread(compiled: Compiled, run: Run, way: str) -> None:
    check(run, compiled(PROGRAMS / "reports.cc", way))
