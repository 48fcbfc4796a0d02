"""The plugin of pytest beside other plugins: workers, time limits, shuffling, event loops."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from halstream._schedules.token import Token
from plugin_help import Runner, command

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


def test_workers_of_xdist_give_the_same_reports(run: Runner) -> None:
    pytest.importorskip("xdist")
    source = """
    @pytest.mark.parametrize("number", range(4))
    def test_many(number):
        print("output of", number)
        race() if number == 2 else right()
    """
    plain = run(source, "--stream-schedules=10", f"--junitxml={run.pytester.path}/plain.xml", process=True)
    options = ("--stream-schedules=10", "-n2", f"--junitxml={run.pytester.path}/report.xml")
    result = run(source, *options, plugins="xdist", process=True)
    result.assert_outcomes(passed=3, failed=1)
    assert command(result) == command(plain)
    section = re.search("- stream schedule -+\n(.*?)\n=", result.stdout.str(), re.DOTALL)
    assert section
    assert "It fails when" in section[1]
    assert "output of 2" in result.stdout.str()
    assert "output of 1" not in result.stdout.str()

    def tokens(name: str) -> list[str]:
        found = ElementTree.parse(run.pytester.path / name).iter("property")
        return [p.attrib["value"] for p in found if p.attrib["name"] == "stream_token"]

    assert tokens("report.xml") == tokens("plain.xml")
    assert [str(Token.parse(token)) for token in tokens("report.xml")] == tokens("report.xml")


def test_each_run_gets_the_whole_time_of_pytest_timeout(run: Runner) -> None:
    """Ten runs of 0.6 s pass a limit of 5 s; what hangs in one run still ends with it."""
    pytest.importorskip("pytest_timeout")
    source = """
    import time
    def test_slow():
        right()
        time.sleep(0.6)
    """
    result = run(source, "--stream-schedules=10", "--timeout=5", plugins="timeout", process=True)
    result.assert_outcomes(passed=1)


def test_a_time_limit_ends_the_test_at_once_and_keeps_the_token(run: Runner) -> None:
    pytest.importorskip("pytest_timeout")
    source = """
    import threading
    def test_hangs(streams):
        right()
        if streams.run == 3:
            threading.Event().wait(100)
    """
    result = run(source, "--stream-schedules=10", "--timeout=5", plugins="timeout", process=True)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Timeout (>5.0s) from pytest-timeout*", "Under schedule hs1-earliest-*"])
    assert result.duration < 50


def test_a_time_limit_does_not_come_while_the_plugin_is_loaded(run: Runner) -> None:
    pytest.importorskip("pytest_timeout")
    run.pytester.makeconftest(
        """
        import sys
        import pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_timeout_set_timer(item, settings):
            assert "halstream._plugin.item" in sys.modules
        """
    )
    for source, options in (
        ("def test_right(): right()", ["--stream-schedules=2"]),
        ("@pytest.mark.streams\ndef test_right(): right()", []),
    ):
        run(source, *options, "--timeout=50", plugins="timeout", process=True).assert_outcomes(passed=1)


def test_shuffled_tests_and_random_numbers_of_pytest_randomly(run: Runner) -> None:
    pytest.importorskip("pytest_randomly")
    source = """
    import random
    def test_random_program():
        stream = hs.Stream()
        for _ in range(random.randrange(20)): stream.nop()
        race()
    def test_right(): right()
    """
    result = run(source, "--stream-schedules=10", "-p", "randomly", "-p", "randomly", plugins="randomly", process=True)
    result.assert_outcomes(passed=1, failed=1)
    # Its seed is the same for each run, so the random program is the same, too.
    result.stdout.fnmatch_lines(["It fails when *"])


def test_coroutines_of_pytest_asyncio(run: Runner) -> None:
    pytest.importorskip("pytest_asyncio")
    run.pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    source = """
    import asyncio
    @pytest.fixture
    async def stream():
        await asyncio.sleep(0)
        yield hs.Stream()
        await asyncio.sleep(0)
    async def test_race(stream):
        stream.nop()
        await asyncio.sleep(0)
        race()
    class TestClass:
        async def test_right(self, stream):
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
            right()
    """
    result = run(source, "--stream-schedules=10", plugins="asyncio", process=True)
    result.assert_outcomes(passed=1, failed=1)
    again = run.again(*command(result), plugins="asyncio", process=True)
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["It fails when *"])


def test_coroutines_of_anyio(run: Runner) -> None:
    pytest.importorskip("anyio")
    source = """
    import anyio
    @pytest.fixture
    def anyio_backend(): return "asyncio"
    @pytest.mark.anyio
    async def test_race():
        await anyio.sleep(0)
        race()
    @pytest.mark.anyio
    async def test_right():
        right()
    """
    result = run(source, "--stream-schedules=10")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["It fails when *"])


def test_examples_of_hypothesis(run: Runner) -> None:
    source = """
    from hypothesis import given, settings, strategies as st
    @settings(max_examples=5, derandomize=True, deadline=None, database=None)
    @given(st.integers(1, 3))
    def test_right(n):
        for _ in range(n): right()
    """
    run(source, "--stream-schedules=5").assert_outcomes(passed=1)


def test_threads_of_a_program(run: Runner) -> None:
    source = """
    import threading
    def test_two_threads():
        event, ready = hs.Event(), threading.Event()
        seen = []
        def consumer():
            stream = hs.Stream()
            ready.wait(10)
            stream.wait(event)
            stream.call(seen.append, 2)
            stream.synchronize()
        thread = threading.Thread(target=consumer)
        thread.start()
        stream = hs.Stream()
        stream.call(seen.append, 1)
        event.record(stream)
        ready.set()
        thread.join(10)
        assert seen == [1, 2]
    """
    run(source, "--stream-schedules=20").assert_outcomes(passed=1)
