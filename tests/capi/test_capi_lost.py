"""Devices lost to a function that stands for a kernel: what Python and other threads see, the end, recovery."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream import testing

Child = Callable[..., subprocess.CompletedProcess[str]]

LIMIT = 10.0
OK, LOST = (0, ""), 5

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("abort")]


@pytest.fixture
def recovers() -> Iterator[None]:
    yield
    testing.recover()


def _here() -> str:
    return f"{Path(__file__).name}:"


def test_D7_every_call_raises_the_error_with_the_line(cases: Any, recovers: None) -> None:
    stream, event, other = hs.Stream(non_blocking=True), hs.Event(timing=True), hs.Stream(1)
    event.record(stream)
    stream.synchronize(timeout=LIMIT)
    assert cases.enqueue_losing(stream._id) == OK
    texts = []
    for _ in range(2):
        for call in (
            stream.synchronize, stream.query, stream.nop, event.synchronize, event.query, hs.synchronize,
            lambda: event.elapsed(event), lambda: stream.wait(event), lambda: other.wait(event), hs.Stream,
            lambda: stream.call(print),
        ):  # fmt: skip
            with pytest.raises(hs.DeviceLostError, match="test::op: the shape is wrong") as error:
                call()
            texts.append(str(error.value))
    assert all(_here() in text and "in test_D7_every_call_raises_the_error_with_the_line)" in text for text in texts), (
        texts
    )
    other.synchronize(timeout=LIMIT)


def test_D7_threads_that_wait_are_released(cases: Any, recovers: None) -> None:
    stream, blocked = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    gate, caught, ran = testing.Gate(blocked), list[type](), list[int]()
    blocked.call(ran.append, 1)

    def wait() -> None:
        try:
            blocked.synchronize(timeout=LIMIT)
        except hs.HalError as exc:
            caught.append(type(exc))

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert cases.enqueue_losing(stream._id) == OK
    waiter.join(LIMIT)
    assert (caught, ran) == ([hs.DeviceLostError], [])
    gate.open()


def test_C11_the_table_of_c_returns_the_code_of_a_lost_device(cases: Any, recovers: None) -> None:
    stream, event = hs.Stream(non_blocking=True), hs.Event()
    event.record(stream)
    assert cases.device_failure(0) == ""
    assert cases.enqueue_losing(stream._id) == OK
    assert cases.synchronize(stream._id, -1)[0] == LOST
    assert cases.codes_of_lost(stream._id, event._id) == (LOST,) * 8
    for text in (cases.synchronize(stream._id, -1)[1], cases.device_failure(0)):
        assert text.startswith("test::op: the shape is wrong (") and _here() in text
    assert cases.device_failure(1) == ""


def _lose(cases: Any, stream: hs.Stream) -> None:
    assert cases.enqueue_losing(stream._id) == OK
    end = time.monotonic() + LIMIT
    while not cases.device_failure(0) and time.monotonic() < end:
        time.sleep(0.001)


def test_D8_a_device_that_recovers_goes_on(cases: Any, recovers: None) -> None:
    stream, ran = hs.Stream(non_blocking=True), list[int]()
    _lose(cases, stream)
    (text,) = testing.recover()
    assert "test::op: the shape is wrong" in text and text.startswith("device 0: ")
    stream.call(ran.append, 1)
    stream.synchronize(timeout=LIMIT)
    assert ran == [1]
    _lose(cases, stream)
    with pytest.raises(hs.DeviceLostError):
        stream.synchronize()
    assert testing.recover() == [], "the program was told"
    assert testing.recover() == []
    stream.synchronize(timeout=LIMIT)


def test_D8_a_schedule_begins_and_ends_with_devices_that_work(cases: Any, recovers: None) -> None:
    stream = hs.Stream(non_blocking=True)
    with pytest.raises(hs.DeviceLostError, match="the shape is wrong"), testing.schedule("fifo"):
        cases.enqueue_losing(stream._id)
    stream.synchronize(timeout=LIMIT)
    with testing.schedule("fifo"):
        cases.enqueue_losing(stream._id)
        with pytest.raises(hs.DeviceLostError):
            stream.synchronize(timeout=LIMIT)
    stream.synchronize(timeout=LIMIT)


@pytest.fixture
def start(cases_file: Path) -> str:
    """The first lines of a program that uses the table."""
    return (
        f"import sys, threading, time; sys.path.insert(0, {str(cases_file.parent)!r})\n"
        "import halstream as hs, capi_cases as cases\n"
        "cases.use(hs.get_api())\n"
        "s = hs.Stream(non_blocking=True)\n"
    )


TOLD = "halstream: the program ended without a look at the error of device 0: test::op: the shape is wrong ("


def test_D7_a_program_that_never_looks_ends_with_a_line_and_1(child: Child, start: str) -> None:
    done = child(start + "cases.enqueue_losing(s._id)\nprint('end')\n")
    assert (done.returncode, done.stdout) == (1, "end\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(TOLD) and ":5 in <module>)" in line, line


def test_C11_codes_without_a_look_at_their_text_are_no_look(child: Child, start: str) -> None:
    done = child(
        start + "event = cases.new_event(s._id)\n"
        "cases.enqueue_losing(s._id)\n"
        "while not cases.device_failure(0): time.sleep(0.001)\n"
        f"assert cases.codes_of_lost(s._id, event) == ({LOST},) * 8\n"
    )
    assert done.returncode == 1 and done.stderr.startswith(TOLD), done.stderr


@pytest.mark.parametrize("how", ["s.synchronize", "lambda: cases.synchronize(s._id, -1)", "hs.testing.recover"])
def test_D7_a_program_that_has_looked_ends_as_it_wants(child: Child, start: str, how: str) -> None:
    done = child(
        start + "import contextlib, halstream.testing\n"
        "cases.enqueue_losing(s._id)\n"
        "while not cases.device_failure(0): time.sleep(0.001)\n"
        "with contextlib.suppress(hs.DeviceLostError):\n"
        f"    ({how})()\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_D7_an_exit_code_of_the_program_stays(child: Child, start: str) -> None:
    done = child(start + "cases.enqueue_losing(s._id)\nsys.exit(7)\n")
    assert done.returncode == 7 and done.stderr.startswith(TOLD)


TESTS = """
import time
import halstream as hs
import pytest
import capi_cases as cases
cases.use(hs.get_api())
s = hs.Stream(non_blocking=True)

def lose():
    cases.enqueue_losing(s._id)
    for _ in range(LOOKS):
        if cases.device_failure(0):
            break
        time.sleep(0.001)

def test_breaks(): lose()
def test_after_it(): s.synchronize()
def test_looks():
    lose()
    with pytest.raises(hs.DeviceLostError):
        s.synchronize()
@pytest.fixture
def tidy():
    yield
    s.synchronize()
def test_looks_and_tidies_up(tidy): test_looks()
def test_fails(): lose(); assert 0, "otherwise"
def test_at_the_end(): s.synchronize()
"""


@pytest.mark.parametrize("options", [[], ["--stream-schedules=3"], ["--stream-sanitize"]], ids=" ".join)
def test_F33_a_test_that_loses_a_device_fails_and_the_next_one_has_it(
    pytester: pytest.Pytester, cases_file: Path, options: list[str]
) -> None:
    # Under a schedule nothing moves while the test looks: it is lost at the end.
    looks = 1 if "--stream-schedules=3" in options else 10_000
    pytester.makepyfile(
        test_it=f"import sys; sys.path.insert(0, {str(cases_file.parent)!r})\n" + TESTS.replace("LOOKS", str(looks))
    )
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:randomly", *options)
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        ["*device 0: test::op: the shape is wrong (test_it.py:11 in lose)*", "FAILED test_it.py::test_breaks*"]
    )
    result.stdout.fnmatch_lines(["*AssertionError: otherwise*"])
