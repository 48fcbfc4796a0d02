"""``halstream init``: what it adds to a project, shows first, and takes back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from halstream._checks import known
from halstream._cli.commands import app
from plugin_help import Runner
from typer.testing import CliRunner, Result

TABLE = '[project]\nname = "x" # keep\n\n[tool.pytest.ini_options]  # mine\nminversion = "7"\n\n[tool.other]\na = 1'
#: Settings in each form that pytest reads, by the file's name.
FORMS = [
    ("pyproject.toml", TABLE),
    ("pyproject.toml", TABLE.replace("\n", "\r\n")),
    ("pyproject.toml", '[project]\nname = "x"'),
    ("pytest.ini", "[pytest]\nminversion = 7\n"),
    ("tox.ini", "[tox]\nskipsdist = true\n\n[pytest]\nminversion = 7\n"),
    ("setup.cfg", "[metadata]\nname = x\n\n[tool:pytest]\nminversion = 7\n"),
    ("setup.py", ""),
]
NATIVE = [
    ("pytest.toml", '[pytest]\nminversion = "9.0"\n'),
    ("pyproject.toml", '[tool.pytest]\nminversion = "9.0"\n'),
]
FORMS += NATIVE if pytest.version_tuple >= (9, 0) else []


def run(*words: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["init", *words], input=answer)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a project, in which the test runs."""
    (tmp_path / "pyproject.toml").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "text"), FORMS)
def test_pytest_has_the_settings_and_undoing_gives_each_byte_back(
    name: str, text: str, pytester: pytest.Pytester, backend: str
) -> None:
    folder = pytester.path
    (folder / name).write_bytes(text.encode())
    before = contents(folder)
    done = run("--yes")
    assert done.exit_code == 0, done.output
    result = Runner(pytester).again("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["streams: 20 schedules, depth 3, seed 0, sanitize"])
    assert run("--undo", "--yes").exit_code == 0
    assert contents(folder) == before
    assert [path.name for path in folder.iterdir()] == [name], "folders that were made are gone"


def test_without_a_terminal_it_is_shown_and_not_written(project: Path) -> None:
    before = contents(project)
    done = run()
    assert done.exit_code == 0 and "nothing is written; say halstream init --yes" in done.output
    assert "+stream_sanitize = true\n" in done.output and "+++ b/.github/workflows/streams.yml" in done.output
    assert contents(project) == before


def test_a_second_time_nothing_is_changed(project: Path) -> None:
    run("--yes")
    once = contents(project)
    done = run("--yes")
    assert (done.exit_code, contents(project)) == (0, once)
    assert "everything is there already" in done.output


def test_what_is_there_already_stays_as_it_is(project: Path) -> None:
    workflow = project / ".github" / "workflows" / "streams.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("name: mine\n")
    (project / "AGENTS.md").write_text("# Mine")
    (project / "pyproject.toml").write_text(TABLE.replace("minversion", "stream_schedules = 3\nminversion"))
    before = contents(project)
    assert run("--yes").exit_code == 0
    assert workflow.read_text() == "name: mine\n"
    assert (project / "AGENTS.md").read_text().startswith("# Mine\n<!-- halstream init: begin ")
    assert len(re.findall("stream_schedules", (project / "pyproject.toml").read_text())) == 1
    assert run("--undo", "--yes").exit_code == 0
    assert contents(project) == before


def test_what_was_added_around_the_lines_stays_when_they_are_undone(project: Path) -> None:
    run("--yes")
    rules = project / "halstream-suppressions.txt"
    rules.write_text(rules.read_text() + "race:loader.py\n")
    assert run("--undo", "--yes").exit_code == 0
    assert contents(project) == {"pyproject.toml": TABLE.encode(), "halstream-suppressions.txt": b"race:loader.py\n"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("stream_schedules = 20", "stream_schedules = 50", "the lines that halstream init added were changed since"),
        ("# halstream init: end\n", "", "a mark of the lines that halstream init added is missing"),
    ],
)
def test_lines_that_were_changed_since_are_not_undone(project: Path, old: str, new: str, said: str) -> None:
    run("--yes")
    path = project / "pyproject.toml"
    path.write_text(path.read_text().replace(old, new))
    before = contents(project)
    done = run("--undo", "--yes")
    assert done.exit_code == 2 and said in done.output and str(path) in done.output.replace("\n", "")
    assert contents(project) == before


def test_a_file_that_cannot_be_parsed_is_named(project: Path) -> None:
    (project / "pyproject.toml").write_text("[project\n")
    done = run("--yes")
    assert done.exit_code == 2 and "pyproject.toml cannot be parsed: " in done.output
    assert list(contents(project)) == ["pyproject.toml"]


def test_settings_in_another_form_are_left_with_the_lines_to_add(project: Path) -> None:
    (project / "pyproject.toml").write_text('tool.pytest.ini_options.minversion = "7"\n')
    done = run("--yes")
    assert done.exit_code == 2 and "add these lines to it:\nstream_sanitize = true" in done.output
    assert list(contents(project)) == ["pyproject.toml"]


def test_a_folder_without_a_project_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("halstream._cli.project._SIGNS", ("nothing-has-this-name",))
    done = run("--yes")
    assert done.exit_code == 2 and "no project is found" in done.output


@pytest.mark.parametrize(("words", "torch"), [([], True), (["--no-torch"], False)])
def test_a_project_with_torch_has_the_module_cached(project: Path, words: list[str], torch: bool) -> None:
    (project / "train.py").write_text("import torch\n")
    run("--yes", *words)
    workflow = (project / ".github" / "workflows" / "streams.yml").read_text()
    assert ("uses: actions/cache@v4" in workflow) == torch
    assert ("\nstream_torch = true\n" in (project / "pyproject.toml").read_text()) == torch
    assert ("verify --json --torch`" in (project / "AGENTS.md").read_text()) == torch


def test_rules_for_known_libraries_are_named_and_are_no_rules_of_the_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = known.Known("pytest", "1", "99", "race:pytest/x.py", "it is read by nobody")
    monkeypatch.setattr(known, "KNOWN", (rule,))
    run("--yes")
    lines = (project / "halstream-suppressions.txt").read_text().splitlines()
    assert f"# In force by itself for pytest {pytest.__version__}, and not needed here: race:pytest/x.py" in lines
    assert all(line.startswith("#") for line in lines)


def test_the_ini_key_names_the_file_of_suppressions(pytester: pytest.Pytester, backend: str) -> None:
    pytester.makeini("[pytest]\nstream_sanitize = true\nstream_suppressions = rules.txt\n")
    (pytester.path / "rules.txt").write_text("race:test_it.py\n")
    pytester.makepyfile(
        test_it="""
        import halstream as hs

        def test_race():
            one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
            x.fill(1, one)
            x.fill(2, two)
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["race:test_it.py: 1 finding"])
