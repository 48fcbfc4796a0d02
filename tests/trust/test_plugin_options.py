"""The plugin of pytest: options, ini keys and markers, and what is said of wrong ones."""

from __future__ import annotations

from collections import Counter
from textwrap import dedent

import pytest
from halstream._schedules.token import Token
from plugin_help import Runner, command

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

COUNT = """
    import sys
    def test_count(streams, pytestconfig):
        hs.Stream().nop()
        sys.stderr.write(f"RAN {streams.schedule}\\n")
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


def ran(result: pytest.RunResult) -> list[str]:
    """Return the schedules that the tests of `COUNT` ran under."""
    return [line.partition("RAN ")[2] for line in result.errlines if "RAN " in line]


def test_without_options_nothing_is_done(run: Runner) -> None:
    result = run(COUNT, "-s")
    result.assert_outcomes(passed=1)
    assert ran(result) == ["parallel"]
    result.stdout.no_fnmatch_line("streams:*")


def test_unused_it_loads_neither_the_extension_nor_numpy(run: Runner) -> None:
    source = """
    import sys
    def test_modules():
        loaded = [name for name in sys.modules if name.startswith("halstream._")]
        assert "halstream.pytest_plugin" in sys.modules
        assert not {"halstream._halstream", "halstream._schedules.search", "halstream._plugin.item"} & set(loaded)
        assert "numpy" not in sys.modules
    """
    run.pytester.makepyfile(test_it=dedent(source))
    run.again("-p", "no:hypothesispytest", process=True).assert_outcomes(passed=1)


def test_no_halstream_switches_it_off(run: Runner) -> None:
    result = run("def test_one(): right()", "-p", "no:halstream", "--stream-schedules=5", process=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --stream-schedules=5"])
    result = run("def test_one(): right()", "-p", "no:halstream", process=True)
    result.assert_outcomes(passed=1)


def test_help_and_markers_list_the_plugin(run: Runner) -> None:
    result = run("", "--help")
    result.stdout.fnmatch_lines(
        [f"*--stream-{name}*" for name in ("schedules=N", "depth=N", "seed=N", "replay=TOKEN", "sanitize", "leaks")]
    )
    result.stdout.fnmatch_lines([f"*stream_{name} *" for name in ("schedules", "depth", "seed")])
    run("", "--markers").stdout.fnmatch_lines(["@pytest.mark.streams(schedules=N*"])


def test_ini_keys_are_like_options_and_options_go_first(run: Runner) -> None:
    run.pytester.makeini("[pytest]\nstream_schedules = 3\nstream_seed = 7\nstream_depth = 2")
    result = run(COUNT, "-s")
    assert len(ran(result)) == 3
    result.stdout.fnmatch_lines(["streams: 3 schedules, depth 2, seed 7"])
    assert len(ran(run.again("-s", "--stream-schedules=2"))) == 2


def counts(result: pytest.RunResult) -> dict[str, int]:
    """Return how often each test ran."""
    return dict(Counter(line.partition(" ")[0] for line in ran(result)))


def test_a_marker_overrides_the_command_line_and_the_ini_file(run: Runner) -> None:
    source = """
    import sys
    def note(name, streams):
        s = hs.Stream()
        s.nop()
        s.synchronize(timeout=10)  # a schedule begins with no work pending
        sys.stderr.write(f"RAN {name} {streams.schedule.split()[0]}\\n")
    @pytest.mark.streams(schedules=2)
    def test_two(streams): note("two", streams)
    def test_plain(streams): note("plain", streams)
    @pytest.mark.streams
    def test_bare(streams): note("bare", streams)
    @pytest.mark.streams(schedules=4, depth=1)
    class TestAll:
        def test_four(self, streams): note("four", streams)
        @pytest.mark.streams(schedules=3)
        def test_three(self, streams): note("three", streams)
    """
    result = run(source, "-s", "--strict-markers")
    result.assert_outcomes(passed=5)
    assert counts(result) == {"two": 2, "plain": 1, "bare": 50, "four": 4, "three": 3}
    assert "plain parallel" in ran(result)
    result = run(source, "-s", "--stream-schedules=6")
    assert counts(result) == {"two": 2, "plain": 6, "bare": 6, "four": 4, "three": 3}


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--stream-schedules=0", "schedules is 0; give 1 to 100000 (with none nothing would be run)"),
        ("--stream-schedules=-5", "schedules is -5"),
        ("--stream-schedules=100001", "schedules is 100001"),
        ("--stream-schedules=many", "--stream-schedules is 'many'; give a whole number"),
        ("--stream-schedules=", "--stream-schedules is empty; give a whole number"),
        ("--stream-replay=", "--stream-replay is empty; give a token"),
        ("--stream-depth=0", "depth is 0; give 1 to 64"),
        ("--stream-depth=2.5", "--stream-depth is '2.5'; give a whole number"),
        ("--stream-seed=-1", "seed is -1"),
        ("--stream-replay=nothing", "'nothing' is not a token; one begins with hs1-"),
        ("--stream-replay=hs1-fifo-00000000-00", "is damaged: its check digits do not fit"),
        ("--stream-replay=hs2-fifo-00000000-00", "version hs2"),
    ],
)
def test_wrong_options_are_usage_errors(run: Runner, option: str, reason: str) -> None:
    result = run("def test_one(): right()", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert reason in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


def test_a_wrong_ini_key_names_the_ini_file(run: Runner) -> None:
    run.pytester.makeini("[pytest]\nstream_schedules = lots")
    result = run("def test_one(): right()")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*stream_schedules in the ini file is 'lots'; give a whole number"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            "shedules=5",
            "has no keyword 'shedules'; it takes schedules, depth, seed, prove, sanitize, strict, pages, compiled, "
            "leaks, threads",
        ),
        ("5", "takes keywords only"),
        ("schedules=0", "schedules is 0"),
        ("schedules='5'", "schedules must be a whole number"),
        ("depth=99", "depth is 99"),
        ("sanitize=1", "sanitize must be True or False or 'threads', not 1"),
    ],
)
def test_wrong_markers_name_the_test(run: Runner, arguments: str, reason: str) -> None:
    result = run(f"@pytest.mark.streams({arguments})\ndef test_one(): right()")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert "test_it.py::test_one: @pytest.mark.streams" in text
    assert reason in text


def test_wrong_markers_fail_the_test_on_a_worker(run: Runner) -> None:
    pytest.importorskip("xdist")
    source = """
    @pytest.mark.streams(shedules=5)
    def test_one(): right()
    def test_two(): right()
    """
    result = run(source, "-n1", plugins="xdist", process=True)
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_one: @pytest.mark.streams has no keyword 'shedules'*"])


def test_X2_a_token_of_a_program_that_changed_is_matched_with_its_operations(run: Runner) -> None:
    words = command(run("def test_race(): race()", "--stream-schedules=10"))
    fixed = run("def test_race(): right()", *words)
    fixed.assert_outcomes(passed=1)
    fixed.stdout.fnmatch_lines(["*::test_race: token hs1-holds-*: fixed: the changed program passes in the order of *"])
    # One more stream in front, so that all numbers differ.
    worse = run("def test_race(): hs.Stream().nop(); race()", *words)
    worse.assert_outcomes(failed=1)
    worse.stdout.fnmatch_lines(["token hs1-holds-*: the changed program still fails in the order of the token*"])
    run("def test_race(): hs.Stream().nop(); race()", *command(worse)).stdout.no_fnmatch_line("*the changed program*")
    other = run("def test_race(): hs.Stream().nop()", *words)
    other.assert_outcomes(failed=1)
    other.stdout.fnmatch_lines(["token hs1-holds-* is stale: the program's operations changed*explore again*"])


def test_replay_runs_a_test_once_and_a_plain_one_as_always(run: Runner) -> None:
    source = COUNT + "    def test_plain(): pass\n"
    token = str(Token("fifo", (), "00000000"))
    result = run(source, "-s", f"--stream-replay={token}")
    result.assert_outcomes(passed=1, failed=1)
    # Twice: the first run may have made what later ones find.
    assert ran(result) == ["fifo", "fifo"]


def test_vendor_backends_are_refused_and_the_error_names_the_alternative(run: Runner) -> None:
    run.pytester.makeconftest(
        """
        import halstream as hs
        import pytest

        def pytest_configure():
            from halstream import _native
            def refuse(spec):
                raise hs.NotSupportedError("no schedules here")
            pytest.refused = pytest.MonkeyPatch()
            pytest.refused.setattr(_native, "schedule_set", refuse)
            pytest.refused.setattr(_native, "backend", lambda: "cuda")

        def pytest_unconfigure():
            pytest.refused.undo()
        """
    )
    result = run("def test_one(): right()", "--stream-schedules=5")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["schedules need the host device, *'cuda'*HALSTREAM_BACKEND=host*sanitizer works on*"])
