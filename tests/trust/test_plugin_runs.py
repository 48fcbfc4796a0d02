"""The plugin of pytest: each test runs under many schedules and has one report."""

from __future__ import annotations

import os
import re
from textwrap import dedent

import pytest
from plugin_help import RACE, Runner, command

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


def counted(result: pytest.RunResult, **outcomes: int) -> None:
    result.assert_outcomes(**outcomes)


def test_a_missing_wait_fails_the_test_with_an_explanation_and_a_command(run: Runner) -> None:
    result = run("def test_race(): race()", "--stream-schedules=20")
    counted(result, failed=1)
    result.stdout.fnmatch_lines(
        [
            "streams: 20 schedules, depth 3, seed 0",
            "*AssertionError: in the order [[]2, 1]",
            "*- stream schedule -*",
            "Fails under schedule hs1-holds-*: as fifo, but 1 operation is held.",
            "  stream 2 (two)  call  *.py:7 race()  two.call(seen.append, 2)",
            "  stream 1 (one)  call  *.py:6 race()  one.call(seen.append, 1)",
            "*held until the call on stream 2 (two) at *.py:7",
            "It fails when the call on stream 2 (two) at *.py:7 runs before the call on stream 1 (one) at *.py:6*",
            "Replay: pytest *.py::test_race --stream-replay=hs1-holds-*",
            "*short test summary*",
        ]
    )


def test_the_command_replays_the_failure_in_another_process(run: Runner) -> None:
    source = """
    @pytest.mark.parametrize("name", ["a b", "c's"])
    def test_race(name):
        race() if name == "c's" else right()
    """
    result = run(source, "--stream-schedules=20")
    counted(result, passed=1, failed=1)
    words = command(result)
    assert "[c's]" in words[0]
    again = run.again(*words, process=True)
    counted(again, failed=1)
    again.stdout.fnmatch_lines(["*in the order [[]2, 1]", "It fails when *", "Replay: *"])
    assert command(again) == words


def test_the_command_is_for_where_pytest_was_started(run: Runner, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]")
    folder = pytester.mkdir("sub")
    pytester.makepyfile(**{"sub/test_race": dedent(RACE) + "def test_race(): race()"})
    os.chdir(folder)
    result = run.again("--stream-schedules=20")
    assert command(result)[0] == "test_race.py::test_race"


def test_each_schedule_runs_setup_call_and_teardown(run: Runner) -> None:
    source = """
    done = []

    @pytest.fixture(scope="module")
    def wide():
        done.append("wide")
        yield
        print("in all", len(done), done)

    @pytest.fixture
    def narrow():
        done.append("up")
        yield
        done.append("down")

    def test_it(wide, narrow, streams):
        done.append(streams.schedule.split()[0])
        right()

    def test_last(wide): pass
    """
    result = run(source, "--stream-schedules=4", "-s")
    counted(result, passed=2)
    expected = ["wide", *(x for s in ["fifo", "latest", "earliest", "starve"] for x in ("up", s, "down"))]
    result.stdout.fnmatch_lines([f"*in all {len(expected)} {expected}".replace("[", "[[]")])


def test_one_report_of_each_phase_with_the_time_of_all_runs(pytester: pytest.Pytester, run: Runner) -> None:
    pytester.makeconftest(
        """
        def pytest_runtest_logreport(report):
            print("~LOG", report.nodeid.partition("::")[2], report.when, report.outcome, report.duration > 0)
        def pytest_runtest_logstart(nodeid):
            print("~START", nodeid)
        def pytest_runtest_logfinish(nodeid):
            print("~FINISH", nodeid)
        """
    )
    result = run("def test_race(): race()\ndef test_right(): right()", "--stream-schedules=20", "-s")
    logged = [line.partition("~")[2] for line in result.outlines]
    assert [line for line in logged if line.startswith("LOG")] == [
        f"LOG {name} {when} {outcome} True"
        for name, call in (("test_race", "failed"), ("test_right", "passed"))
        for when, outcome in (("setup", "passed"), ("call", call), ("teardown", "passed"))
    ]
    assert sum("START" in line for line in logged) == sum("FINISH" in line for line in logged) == 2


def test_a_test_without_streams_runs_once(run: Runner) -> None:
    source = """
    runs = []
    def test_plain(): runs.append(1)
    def test_plain_fails(): runs.append(2); assert 0
    def test_count(): assert runs == [1, 2]
    """
    result = run(source, "--stream-schedules=20")
    counted(result, passed=2, failed=1)
    result.stdout.no_fnmatch_line("*stream schedule*")


def test_wider_fixtures_are_no_part_of_a_run(run: Runner) -> None:
    """Their streams' work comes in the first run only; tokens must not depend on it."""
    source = """
    @pytest.fixture(scope="session")
    def stream():
        stream = hs.Stream()
        for _ in range(5): stream.nop()
        stream.synchronize()
        return stream

    def test_race(stream):
        stream.nop()
        race()
    """
    result = run(source, "--stream-schedules=20")
    again = run(source, *command(result))
    counted(again, failed=1)
    again.stdout.no_fnmatch_line("*stale*")
    again.stdout.fnmatch_lines(["*in the order [[]2, 1]"])


@pytest.mark.parametrize("last", ["pass", "assert 0"])
def test_wider_fixtures_end_when_pytest_would_end_them(run: Runner, last: str) -> None:
    source = f"""
    log = []
    class TestOne:
        @pytest.fixture(scope="class", autouse=True)
        def wide(self):
            log.append("up"); yield; log.append("down")
        def test_a(self): right(); assert log == ["up"]
        def test_b(self): right(); {last}
    def test_after(): assert log == ["up", "down"]
    """
    result = run(source, "--stream-schedules=5")
    assert result.parseoutcomes().get("passed", 0) == (3 if last == "pass" else 2)


def test_a_wider_fixture_that_fails_to_end_is_an_error(run: Runner) -> None:
    source = """
    @pytest.fixture(scope="module")
    def wide():
        yield
        print("from the end")
        raise LookupError("cannot end")
    def test_one(wide): right()
    """
    result = run(source, "--stream-schedules=5")
    counted(result, passed=1, errors=1)
    result.stdout.fnmatch_lines(["*LookupError: cannot end", "*Captured stdout teardown*", "from the end"])


def test_only_the_run_that_counts_shows_its_output_properties_and_warnings(
    run: Runner, pytester: pytest.Pytester
) -> None:
    source = """
    import logging, warnings
    def test_race(streams, record_property, caplog):
        print("printed under", streams.schedule)
        logging.getLogger().warning("logged under %s", streams.schedule)
        warnings.warn(f"warned in run {streams.run}")
        record_property("run", streams.run)
        assert len(caplog.records) == 1
        streams.note("noted under " + streams.schedule)
        race()
    """
    result = run(source, "--stream-schedules=20", f"--junitxml={pytester.path}/report.xml", "-ojunit_family=xunit1")
    counted(result, failed=1, warnings=1)
    text = result.stdout.str()
    for word in ("printed", "logged", "noted"):
        found = re.findall(rf"{word} under (\w+)", text.partition("short test summary")[0])
        assert set(found) == {"holds"}, word
    xml = (pytester.path / "report.xml").read_text()
    assert xml.count('name="run"') == 1
    token = command(result)[1].partition("=")[2]
    assert f'<property name="stream_token" value="{token}" />' in xml


def test_capsys_sees_one_run_at_a_time(run: Runner) -> None:
    source = """
    def test_output(capsys):
        print("once")
        right()
        assert capsys.readouterr().out == "once\\n"
    """
    counted(run(source, "--stream-schedules=10"), passed=1)


def test_classes_are_instantiated_for_each_run(run: Runner) -> None:
    source = """
    import unittest
    class TestClass:
        count = 0
        def setup_method(self): self.count += 1
        def test_it(self):
            self.count += 1
            assert self.count == 2
            right()
    class TestCase(unittest.TestCase):
        count = 0
        def setUp(self): self.count += 1
        def test_it(self):
            self.count += 1
            self.assertEqual(self.count, 2)
            race()
        def test_skipped(self): self.skipTest("no")
    """
    result = run(source, "--stream-schedules=10")
    counted(result, passed=1, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["It fails when *", "Replay: *::TestCase::test_it *"])


def test_exitfirst_stops_after_the_report(run: Runner) -> None:
    source = """
    @pytest.fixture(scope="module", autouse=True)
    def wide(): yield; print("taken down")
    def test_one(): race()
    def test_two(): right()
    """
    result = run(source, "--stream-schedules=10", "-x", "-s")
    counted(result, failed=1)
    result.stdout.fnmatch_lines(["*taken down*", "*stopping after 1 failures*"])


def test_ctrl_c_ends_the_session_and_the_schedule(pytester: pytest.Pytester, run: Runner) -> None:
    pytester.makeconftest(
        """
        def pytest_unconfigure():
            from halstream import _native
            print("SCHEDULE", _native.schedule_get())
        """
    )
    source = """
    def test_one(streams):
        right()
        if streams.run == 3: raise KeyboardInterrupt
    """
    result = run(source, "--stream-schedules=10", process=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["SCHEDULE parallel"])


def test_the_debugger_is_entered_once_under_the_shrunk_schedule(pytester: pytest.Pytester, run: Runner) -> None:
    pytester.makeconftest(
        """
        def pytest_exception_interact(node, call, report):
            from halstream import _native
            print("INTERACT", report.when, _native.schedule_get())
        """
    )
    source = """
    def test_race(): race()
    def test_plain(): assert 0
    """
    pytester.makepyfile(
        debugger="""
        import pdb
        class Debugger(pdb.Pdb):
            def interaction(self, *args): pass
        """
    )
    pytester.syspathinsert()
    result = run(source, "--stream-schedules=10", "--pdb", "--pdbcls=debugger:Debugger", "-s")
    shown = [line for line in result.outlines if "INTERACT" in line]
    assert len(shown) == 2, result.outlines
    assert re.search(r"INTERACT call holds 1\.1>2\.1", shown[0])
    assert re.search(r"INTERACT call fifo", shown[1])


def test_items_that_are_no_functions_run_as_always(pytester: pytest.Pytester, run: Runner) -> None:
    source = '''
    def documented():
        """
        >>> import halstream as hs
        >>> hs.Stream().nop()
        """
    '''
    counted(run(source, "--stream-schedules=5", "--doctest-modules"), passed=1)


def test_the_fixture_has_the_schedule_of_the_run(run: Runner) -> None:
    source = """
    def test_one(streams):
        right()
        print("SEEN", streams.run, streams.schedule, streams.seed)
    """
    result = run(source, "--stream-schedules=3", "--stream-seed=9", "-s")
    seen = re.findall(r"SEEN (.*)", result.stdout.str())
    assert seen == ["1 fifo 9", "2 latest 9", "3 earliest 9"]
    plain = run(source, "-s")
    assert re.findall(r"SEEN (.*)", plain.stdout.str()) == ["1 parallel 0"]


def test_arrays_of_wider_fixtures_are_as_in_the_first_run(run: Runner) -> None:
    """The first, correct run leaves the right values; a later one must not read those."""
    source = """
    import numpy as np

    class Model:
        def __init__(self):
            self.layers = [np.zeros(4), hs.zeros(4)]

    @pytest.fixture(scope="module")
    def model():
        return Model()

    def work(array):
        view = array if isinstance(array, np.ndarray) else array.numpy()
        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(view.fill, 7)
        two.call(lambda: seen.append(view.copy()))  # does not wait for `one`
        hs.synchronize()
        assert (seen[0] == 7).all()
        return view

    @pytest.mark.parametrize("layer", [0, 1])
    def test_work(model, layer):
        work(model.layers[layer])

    def test_right(model):
        assert model.layers[0][0] in (0, 7)
    """
    result = run(source, "--stream-schedules=20")
    counted(result, passed=1, failed=2)
    result.stdout.fnmatch_lines(["*Fails under schedule *"])
