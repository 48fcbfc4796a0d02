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
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*work that was left does not end and was dropped: *gate*"])


def test_a_function_that_never_ends_fails_the_test_that_left_it_and_no_other(run: Runner) -> None:
    source = """
    import threading
    def test_hangs():
        stream = hs.Stream()
        stream.call(threading.Event().wait)
        stream.synchronize()
    def test_next(): right()
    def test_hangs_on_the_default_stream():
        hs.Stream.from_handle(0).call(threading.Event().wait)
    def test_default_stream():
        seen = []
        hs.Stream.from_handle(0).call(seen.append, 1)
        hs.Stream.from_handle(0).synchronize()
        assert seen == [1]
    def test_race(): race()
    """
    result = run(source, "--stream-schedules=5", process=True)
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        ["*this wait can never end*", "a function does not end, and was abandoned: *host function*", "It fails when*"]
    )
    assert result.duration < 30


@pytest.mark.parametrize("options", [[], ["--stream-schedules=5"], ["--stream-sanitize"]], ids=str)
def test_an_assertion_that_fails_on_a_stream_fails_the_test_once(run: Runner, options: list[str]) -> None:
    source = """
    from halstream.testing import Gate
    def check(value): assert value == 2, "on the stream"
    def test_waits():
        stream = hs.Stream()
        stream.call(check, 1)
        stream.synchronize()
    def test_does_not_wait(): hs.Stream().call(check, 1)
    @pytest.fixture
    def held():
        stream = hs.Stream()
        with Gate(stream): yield stream
        stream.synchronize()
    def test_fails_itself_too():
        stream = hs.Stream()
        stream.call(check, 1)
        stream.synchronize()
        assert not "own"
    def test_passes(): hs.Stream().call(check, 2)
    @pytest.mark.xfail(strict=True)
    def test_expected():
        stream = hs.Stream()
        stream.call(check, 1)
        stream.synchronize()
    def test_is_looked_at(monkeypatch):
        import sys
        seen = []
        monkeypatch.setattr(sys, "unraisablehook", seen.append)
        stream = hs.Stream()
        stream.call(check, 1)
        stream.synchronize()
        assert seen
    """
    late = """
    def test_runs_when_the_test_has_returned(held): held.call(check, 1)
    """
    result = run(source + late * bool(options), *options)
    result.assert_outcomes(passed=2, xfailed=1, failed=3 + bool(options))
    assert result.stdout.str().count("E   AssertionError: on the stream") == 3 + bool(options)


def test_an_assertion_on_a_stream_that_needs_an_order_is_explained(run: Runner) -> None:
    source = """
    def test_order():
        one, two, seen = hs.Stream(), hs.Stream(), []
        def check(): assert seen == [1]
        one.call(seen.append, 1)
        two.call(check)
    """
    result = run(source, "--stream-schedules=10")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["It fails when * runs before *", "Replay: *"])


def test_a_test_has_one_outcome_however_much_is_wrong(run: Runner) -> None:
    source = """
    kept = []
    def test_everything():
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
        kept.extend([one, two, x])
        x.fill(1, one)
        x.fill(2, two)
        assert not kept, "its own"
    """
    for options in (["--stream-sanitize"], ["--stream-sanitize", "--stream-leaks", "--stream-schedules=5"]):
        result = run(source, *options)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*AssertionError: its own*", "unordered access: *"])


@pytest.mark.parametrize("mark", ["", "@pytest.mark.streams(sanitize=True)"])
def test_a_damaged_file_of_suppressions_is_a_usage_error(
    run: Runner, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    run.pytester.makefile(".txt", rules="race\n")
    source = f"""
    {mark or "# not marked"}
    def test_it(): right()
    """
    for file, why in (("rules.txt", "rules.txt:1: there is no colon"), ("absent", "'absent' cannot be read: No such")):
        monkeypatch.setenv("HALSTREAM_SUPPRESSIONS", file)
        result = run(source, *([] if mark else ["--stream-sanitize"]))
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "HALSTREAM_SUPPRESSIONS: " in result.stderr.str() and why in result.stderr.str()
    run("def test_it(): right()").assert_outcomes(passed=1)  # nothing needs it


@pytest.mark.parametrize("workers", [False, True])
def test_the_summary_counts_what_each_suppression_took_out(
    run: Runner, monkeypatch: pytest.MonkeyPatch, workers: bool
) -> None:
    if workers:
        pytest.importorskip("xdist")
    source = """
    def race():
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
        x.fill(1, one)
        x.fill(2, two)

    def test_one(): race()

    def test_two(): race()
    """
    run.pytester.makefile(".txt", rules="race:gone.py\nrace:*.py:race\n")
    monkeypatch.setenv("HALSTREAM_SUPPRESSIONS", str(run.pytester.path / "rules.txt"))
    result = (
        run(source, "--stream-sanitize", "-n2", plugins="xdist", process=True)
        if workers
        else run(source, "--stream-sanitize")
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*suppressed findings of streams*", "race:gone.py: not used", "race:[*].py:race: 2 findings"]
    )
    assert "suppressed findings" not in run(source).stdout.str()


def test_V46_the_summary_says_what_rules_for_libraries_took_out(run: Runner) -> None:
    source = """
    from halstream._checks import known
    known.KNOWN = (known.Known("pytest", "1", "999", "race:*.py:race", "a test"),)

    def race():
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
        x.fill(1, one)
        x.fill(2, two)

    def test_one(): race()

    def test_two(): race()
    """
    result = run(source, "--stream-sanitize", process=True)
    result.assert_outcomes(passed=2)
    said = f"2 findings in pytest {pytest.__version__} suppressed: a test"
    result.stdout.fnmatch_lines(["*suppressed findings of streams*", said])


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
