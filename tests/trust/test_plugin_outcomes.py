"""The plugin of pytest: skips, expected failures, subtests, and tests that cannot be replayed."""

from __future__ import annotations

import pytest
from plugin_help import Runner

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


def counted(result: pytest.RunResult, **outcomes: int) -> None:
    result.assert_outcomes(**outcomes)


def test_skips_and_expected_failures(run: Runner) -> None:
    source = """
    @pytest.mark.skip
    def test_skipped_by_mark(): assert 0
    def test_skipped(): pytest.skip("here")
    @pytest.mark.xfail
    def test_race_is_expected(): race()
    @pytest.mark.xfail(strict=True)
    def test_race_is_expected_strictly(): race()
    @pytest.mark.xfail
    def test_passes_by_surprise(): right()
    @pytest.mark.xfail(strict=True)
    def test_passes_by_surprise_strictly(): right()
    @pytest.mark.xfail(raises=LookupError)
    def test_fails_otherwise(): race()
    def test_imperative(): right(); pytest.xfail("here")
    """
    result = run(source, "--stream-schedules=10", "-rA")
    counted(result, skipped=2, xfailed=3, xpassed=1, failed=2)
    result.stdout.fnmatch_lines_random(
        ["*XPASS(strict)*", "FAILED *test_fails_otherwise*", "XFAIL *test_race_is_expected*"]
    )


def test_a_failure_by_pytest_fail_and_in_fixtures(run: Runner) -> None:
    source = """
    def test_fails(): race(lambda text: pytest.fail.Exception(text))
    @pytest.fixture
    def racing_up(): race()
    @pytest.fixture
    def racing_down(): yield; race()
    def test_up(racing_up): pass
    def test_down(racing_down): pass
    """
    result = run(source, "--stream-schedules=10")
    counted(result, failed=1, passed=1, errors=2)
    assert sum(line.startswith("It fails when") for line in result.outlines) == 3


def test_subtests_are_reported_once(run: Runner) -> None:
    pytest.importorskip("_pytest.subtests")
    source = """
    def test_all_right(subtests):
        for i in range(2):
            with subtests.test(i=i): right()
    def test_one_fails(subtests):
        with subtests.test("right"): right()
        with subtests.test("race"): race()
    """
    result = run(source, "--stream-schedules=10", "-v")
    text = result.stdout.str()
    assert text.count("SUBPASSED") == 3
    assert text.count("::test_one_fails SUBFAILED[race]") == 1
    assert sum(line.startswith("It fails when") for line in result.outlines) == 1


def test_a_test_that_is_not_deterministic_is_reported_as_such(run: Runner) -> None:
    source = """
    import itertools
    count = itertools.count()
    def test_varies():
        stream = hs.Stream()
        for _ in range(next(count) % 2 + 1): stream.nop()
        assert 0
    def test_by_chance():
        hs.Stream().nop()
        assert next(count) % 7
    """
    result = run(source, "--stream-schedules=20")
    counted(result, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*assert 0*",
            "the program is not deterministic by itself: two runs under the schedule fifo differ. *call 2*",
            "the program is not deterministic by itself: *and the other passed*",
        ]
    )
    assert not any(line.startswith("Replay") for line in result.outlines)


def test_gates_and_work_that_a_test_leaves_do_not_reach_the_next(run: Runner) -> None:
    source = """
    from halstream.testing import Gate
    kept = []
    def test_leaves_a_gate():
        stream = hs.Stream()
        kept.append((stream, Gate(stream)))
        stream.nop()
    def test_fails_with_a_gate():
        stream = hs.Stream()
        kept.append((stream, Gate(stream)))
        assert 0
    def test_next(): right()
    """
    counted(run(source, "--stream-schedules=5"), passed=2, failed=1)


def test_pending_work_of_wider_fixtures_is_named(run: Runner) -> None:
    source = """
    from halstream.testing import Gate
    @pytest.fixture(scope="module", autouse=True)
    def held():
        stream = hs.Stream()
        with Gate(stream): yield
    def test_one(): right()
    def test_two(): right()
    """
    result = run(source, "--stream-schedules=5")
    assert result.parseoutcomes()["errors"] >= 1
    result.stdout.fnmatch_lines(["*work that was left does not end and was dropped: *gate*"])


def test_a_function_that_never_ends_is_laid_to_the_test_that_left_it(run: Runner) -> None:
    source = """
    import threading
    def test_hangs():
        stream = hs.Stream()
        stream.call(threading.Event().wait)
        stream.synchronize()
    def test_next(): right()
    """
    result = run(source, "--stream-schedules=5", process=True)
    result.assert_outcomes(failed=1, errors=2)
    result.stdout.fnmatch_lines(
        ["a schedule begins with no work pending, but *(left by test_it.py::test_hangs)", "*this wait can never end*"]
    )
    assert result.duration < 30


def test_what_earlier_runs_leave_is_no_schedules_fault(run: Runner) -> None:
    source = """
    import itertools
    count = itertools.count()
    def test_fails_from_the_third_run_on():
        hs.Stream().nop()
        assert next(count) < 2
    """
    result = run(source, "--stream-schedules=20")
    counted(result, failed=1)
    result.stdout.fnmatch_lines(["*not deterministic by itself: two runs under the schedule fifo differ*"])
    assert not any(line.startswith("Replay") for line in result.outlines)
