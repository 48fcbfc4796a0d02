"""The plugin of pytest: unordered accesses and leaks fail tests."""

from __future__ import annotations

import pytest
from plugin_help import Runner, command

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

UNORDERED = """
    def unordered(wait=False):
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
        x.fill(1, one)
        if wait: two.wait(one.record())
        x.fill(2, two)
        one.synchronize()
        two.synchronize()
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


@pytest.mark.parametrize("schedules", [0, 5])
def test_unordered_accesses_fail_a_test_that_passes(run: Runner, schedules: int) -> None:
    source = f"""
    {UNORDERED}
    def test_unordered(): unordered()
    def test_ordered(): unordered(wait=True)
    @pytest.fixture
    def at_the_end():
        yield
        unordered()
    def test_end(at_the_end): pass
    @pytest.mark.xfail
    def test_expected(): unordered()
    def test_plain(): pass
    """
    options = [f"--stream-schedules={schedules}"] if schedules else []
    result = run(source.replace("\n    \n", "\n"), "--stream-sanitize", *options)
    result.assert_outcomes(passed=2, failed=2, xfailed=1)
    result.stdout.fnmatch_lines(["unordered access: two operations touch the same 128 *", "  fix: before test_it*"])
    result.stdout.no_fnmatch_line("*_pytest_runs.py*")


def test_a_replay_of_what_the_sanitizer_found_sanitizes(run: Runner) -> None:
    result = run(f"{UNORDERED}\n    def test_unordered(): unordered()", "--stream-sanitize", "--stream-schedules=5")
    words = command(result)
    assert words[-1] == "--stream-sanitize"
    run.again(*words).assert_outcomes(failed=1)


def test_the_marker_turns_on_the_sanitizer_only(run: Runner) -> None:
    source = f"""
    {UNORDERED}
    @pytest.mark.streams(sanitize=True)
    def test_marked(streams):
        assert streams.schedule == "fifo"
        unordered()
    def test_not_marked(streams):
        assert streams.schedule == "parallel"
        unordered()
    """
    run(source).assert_outcomes(failed=1, passed=1)


LEAKS = """
    kept = []
    def test_stream(): kept.append(hs.Stream())
    def test_memory(): kept.append(hs.empty(4))
    def test_event(): kept.append(hs.Event())
    def test_gate():
        kept.append(hs.Stream(non_blocking=True))
        kept.append(hs.testing.Gate(kept[-1]))

    @pytest.fixture(scope="module")
    def wide(): return hs.Stream()
    @pytest.fixture
    def narrow(): return hs.Stream()
    class TestNothing:
        def test_nothing(self, wide, narrow):
            self.own = hs.Stream()
            self.own.nop()
            wide.nop()
            narrow.nop()
    def test_fails():
        stream = hs.Stream()
        assert not stream
"""


@pytest.mark.parametrize("schedules", [0, 5])
def test_what_a_test_leaves_fails_it(run: Runner, schedules: int) -> None:
    options = [f"--stream-schedules={schedules}"] if schedules else []
    result = run(LEAKS, "--stream-leaks", *options, process=True)
    result.assert_outcomes(passed=1, failed=5)
    text = result.stdout.str()
    for name, what in (("stream", "stream"), ("memory", "32 bytes of device 0"), ("event", "event"), ("gate", "gate")):
        found = [line for line in result.outlines if f"the test leaves {what}" in line and f"in test_{name}" in line]
        assert found, text
    assert "_pytest_runs.py" not in text


def test_what_one_test_makes_is_noted_for_no_other_test(run: Runner) -> None:
    source = """
    from halstream._stalls import leaks
    @pytest.mark.streams(leaks=True)
    def test_marked(): assert not leaks.tracking()
    def test_not_marked():
        assert leaks.tracking()
        leaks.stop()
    """
    run(source).assert_outcomes(passed=2)


def test_what_a_testcase_keeps_of_itself_is_not_left(run: Runner) -> None:
    source = """
    import unittest
    class TestKeeps(unittest.TestCase):
        def setUp(self): self.stream = hs.Stream()
        def test_right(self): self.stream.nop()
    class TestCoroutine(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self): self.stream = hs.Stream()
        async def test_right(self): self.stream.nop()
    """
    for options in ([], ["--stream-schedules=5"]):
        run(source, "--stream-leaks", *options).assert_outcomes(passed=2)


def test_pooled_streams_are_not_left_but_their_work_is(run: Runner) -> None:
    source = """
    from halstream.testing import Gate
    from halstream.torch import cuda
    kept = []
    def test_right(): cuda.Stream().record_event().synchronize()
    def test_work():
        stream = cuda.Stream()
        kept.append(Gate(stream))
        stream.record_event()
    """
    result = run(source, "--stream-leaks", process=True)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*unfinished work: stream * has * pending*"])


@pytest.mark.parametrize("schedules", [0, 5])
def test_strict_fails_tests_with_functions_of_unknown_accesses(run: Runner, schedules: int) -> None:
    source = """
    def program(declared):
        s, x = hs.Stream(), hs.zeros(4, stream=hs.current_stream())
        hs.synchronize()
        views = [x._as_host()]
        s.call(lambda: views[0].sum(), **({"reads": [x]} if declared else {}))
        s.synchronize()
    def test_undeclared(): program(False)
    def test_declared(): program(True)
    @pytest.fixture
    def at_the_end():
        yield
        program(False)
    def test_end(at_the_end): pass
    """
    options = [f"--stream-schedules={schedules}"] if schedules else []
    run(source, "--stream-sanitize", *options).assert_outcomes(passed=3)
    result = run(source, "--stream-strict", *options)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "the accesses of 1 function are not known",
            "  <lambda> at test_it*.py:*: it can reach `views[[]0]`",
            "  say what they touch: reads=* and writes=* of the call, or halstream.accesses(function, *",
        ]
    )
