"""``halstream verify``: the tests of a change, what they show, and the patches that were tried, as one document."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from textwrap import dedent
from typing import Any

import jsonschema
import pytest
from halstream._cli import verifying
from halstream._cli.commands import app
from halstream._plugin.chosen import affected
from typer.testing import CliRunner

pytestmark = [
    pytest.mark.needs("schedules"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

LANES = """
import halstream as hs

def work():
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
    x.fill(1, one)
    x.fill(2, two)
    hs.synchronize()
    return x.numpy(two).tolist()
"""
RACE = """
import lanes

def test_race():
    assert lanes.work() == [2] * 16
"""
ORDER = """
import halstream as hs

def test_order():
    one, two, seen = hs.Stream(), hs.Stream(), []
    one.call(seen.append, 1)
    two.call(seen.append, 2)
    hs.synchronize()
    assert seen == [1, 2]

def test_plain():
    assert 1 == 2
"""
#: It needs the driver, too.
DRIVER = ORDER.replace("halstream as hs", "ctypes, halstream as hs").replace(
    "test_order():", "test_order():\n    assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0"
)
#: The test with the race fails with the suggested line, too.
WRONG = """
import halstream as hs
import lanes

def test_wrong_nevertheless():
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(4)
    x.fill(1, one)
    x.fill(2, two)
    assert x.numpy(two).tolist() == [3] * 4
"""
RIGHT = """
import halstream as hs

def test_right():
    hs.Stream().synchronize()
"""


PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let git speak English and know no settings of the user and no repository around the test's folder."""
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)


def document(done: subprocess.CompletedProcess[str]) -> Any:
    """Return what ``--json`` printed."""
    return checked(json.loads(done.stdout))


def checked(found: Any) -> Any:
    """Return a document, which has the form that the package says."""
    schema = json.loads(files("halstream._cli").joinpath("verify.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    return found


def test_a_race_has_its_accesses_a_token_that_replays_it_and_a_patch_that_repairs_it(cli: Any) -> None:
    cli.script(LANES, "lanes.py")
    cli.script(RACE, "test_race.py")
    done = cli("verify", "test_race.py", "--json")
    found = document(done)
    assert (done.returncode, found["verdict"], found["tests"]["failed"]) == (1, "fail", 1), done.stderr
    (one,) = found["findings"]
    assert (one["code"], one["level"], one["tests"]) == ("unordered-access", "error", ["test_race.py::test_race"])
    assert [(a["file"], a["line"], a["operation"], a["write"]) for a in one["accesses"]] == [
        ("lanes.py", 6, "fill", True),
        ("lanes.py", 7, "fill", True),
    ]
    assert [a["stream"].endswith(f"({name})") for a, name in zip(one["accesses"], ("one", "two"), strict=True)]
    assert "never waited for" in one["why"] and one["fix"]["code"] == "two.wait(one.record())"
    program, *words = shlex.split(one["replay"])
    again = cli(*words)
    assert program == "halstream" and again.returncode == 1 and "unordered access" in again.stdout, again.stdout
    (patch,) = found["patches"]
    assert one["patch"] == 0 and patch["tests"] == one["tests"] and patch["schedules"] == 50
    (cli.folder / "fix.diff").write_text(patch["diff"])
    git(cli.folder, "apply", "fix.diff")
    repaired = cli("verify", "test_race.py", "--json", "--schedules", "5")
    assert (repaired.returncode, document(repaired)["verdict"]) == (0, "pass"), repaired.stdout


def test_what_is_no_access_is_a_finding_of_its_schedule_or_another_failure(cli: Any) -> None:
    cli.script(ORDER, "test_order.py")
    done = cli("verify", "test_order.py", "--json")
    found = document(done)
    (one,) = found["findings"]
    assert (one["code"], one["accesses"], one["patch"]) == ("schedule-failure", [], None)
    assert one["token"] in one["replay"]
    (failure,) = found["failures"]
    assert failure["test"] == "test_order.py::test_plain" and "assert 1 == 2" in failure["text"]
    assert done.returncode == 1 and found["patches"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the driver's library is for Linux")
def test_cuda_is_handed_on_to_the_tests_and_to_the_command_that_replays_one(cli: Any) -> None:
    cli.script(DRIVER, "test_order.py")
    found = document(cli("verify", "--cuda", "test_order.py::test_order", "--json"))
    (one,) = found["findings"]
    assert one["code"] == "schedule-failure" and "--cuda" in one["replay"]
    again = cli(*shlex.split(one["replay"])[1:])
    assert again.returncode == 1 and "seen == [1, 2]" in again.stdout, again.stdout


def test_a_patch_has_the_lines_of_the_tests_that_it_silences_only(cli: Any) -> None:
    cli.script(LANES, "lanes.py")
    cli.script(RACE, "test_race.py")
    cli.script(WRONG, "test_wrong.py")
    found = document(cli("verify", ".", "--json", "--schedules", "3"))
    (patch,) = found["patches"]
    assert (patch["files"], patch["tests"]) == (["lanes.py"], ["test_race.py::test_race"])
    (unproven,) = found["unproven"]
    assert unproven["test"] == "test_wrong.py::test_wrong_nevertheless" and "still fails" in unproven["why"]
    patched = {one["tests"][0]: one["patch"] for one in found["findings"]}
    assert patched == {"test_race.py::test_race": 0, "test_wrong.py::test_wrong_nevertheless": None}


def test_the_tests_are_those_that_a_change_is_about(cli: Any) -> None:
    folder = cli.folder
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = checks\naddopts = -p xdist -n 2\n")
    for name, text in {
        "pack/__init__.py": "",
        "pack/deep.py": "from . import lanes",
        "pack/lanes.py": "",
        "pack/other.py": "",
        "checks/test_lanes.py": f"from pack import deep\n{RIGHT}",
        "checks/test_other.py": f"import pack.other\n{RIGHT}",
        "checks/test_none.py": RIGHT,
        "elsewhere/test_lanes_too.py": f"import pack.lanes\n{RIGHT}",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    done = cli("verify", "--json")
    found = document(done)
    assert (done.returncode, found["verdict"]) == (0, "nothing")
    assert "name tests to run them: halstream verify tests" in found["message"]
    git(folder, "switch", "-qc", "change")
    (folder / "pack" / "lanes.py").write_text("changed = True\n")
    git(folder, "commit", "-qam", "second")
    (folder / "checks" / "test_new.py").write_text(RIGHT)
    done = cli("verify", "--json", "--schedules", "2")
    found = document(done)
    assert found["tests"]["files"] == ["checks/test_lanes.py", "checks/test_new.py"], found
    assert (done.returncode, found["verdict"], found["tests"]["passed"]) == (0, "pass", 2)
    against = document(cli("verify", "--json", "--base", "HEAD", "--schedules", "2"))
    assert against["tests"]["files"] == ["checks/test_new.py"]
    unknown = cli("verify", "--base", "nowhere")
    assert unknown.returncode == 2 and "git knows no commit 'nowhere'" in unknown.stderr


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (
            "src/pack/core.py",
            {
                "src/pack/core.py",
                "src/pack/__init__.py",
                "src/pack/sub/top.py",
                "tests/test_all.py",
                "tests/test_pack.py",
            },
        ),
        ("src/pack/sub/leaf.py", {"src/pack/sub/leaf.py", "src/pack/sub/top.py", "tests/test_all.py"}),
        ("tests/conftest.py", {"tests/conftest.py", "tests/test_all.py", "tests/test_pack.py", "tests/test_own.py"}),
        ("helper.py", {"helper.py", "tests/test_own.py"}),
        ("src/pack/gone.py", {"src/pack/gone.py", "tests/test_pack.py"}),
    ],
)
def test_what_a_change_affects(changed: str, wanted: set[str], tmp_path: Path) -> None:
    sources = {
        "src/pack/__init__.py": "from .core import work",
        "src/pack/core.py": "",
        "src/pack/sub/__init__.py": "",
        "src/pack/sub/top.py": "def late():\n    from .leaf import (\n        one,  # first\n    )",
        "src/pack/sub/leaf.py": "",
        "helper.py": "",
        "tests/conftest.py": "",
        "tests/test_all.py": "import pack.sub.top",
        "tests/test_pack.py": "from pack import gone",
        "tests/test_own.py": "if True: import numpy as np, \\\n    helper as h",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = affected([tmp_path / changed], [tmp_path / name for name in sources], tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in found} == wanted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "git says: fatal: not a git repository"),
        (["nowhere.py"], "there is no file or folder 'nowhere.py'"),
        (["empty.py"], "pytest found no test in empty.py"),
        (["test_broken.py"], "test_broken.py cannot be collected"),
        (["test_slow.py", "--timeout", "4"], "the tests did not end within 4 s"),
        (["test_crash.py"], "ended with exit code 7 before they did"),
        (["test_right.py", "--torch"], "pytest could not run the tests"),
    ],
    ids=["no repository", "no file", "no test", "broken", "too long", "crash", "no torch"],
)
def test_what_cannot_be_run_is_an_error_that_says_why(
    words: list[str], said: str, cli: Any, hide: Callable[..., dict[str, str]]
) -> None:
    cli.script("", "empty.py")
    cli.script("import nowhere_at_all", "test_broken.py")
    cli.script(RIGHT, "test_right.py")
    cli.script("import os\n\ndef test_crash():\n    os._exit(7)\n", "test_crash.py")
    cli.script("import threading\n\ndef test_slow():\n    threading.Event().wait(60)\n", "test_slow.py")
    without_torch = os.pathsep.join([hide("torch")["PYTHONPATH"], os.environ.get("PYTHONPATH", "")])
    done = cli("verify", "--json", *words, env={"PYTHONPATH": without_torch})
    found = document(done)
    assert (done.returncode, found["verdict"]) == (2, "error")
    assert said in found["message"], found["message"]


def test_without_git_or_pytest_the_error_names_it(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cli.folder))
    done = cli("verify")
    assert done.returncode == 2 and "git, which is not installed" in done.stderr, done.stderr
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = verifying.verify(verifying.Wanted(["x.py"]), print)
    assert found["verdict"] == "error" and "pip install pytest" in found["message"]


def test_progress_is_told_where_it_takes_longer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, backend: str) -> None:
    (tmp_path / "test_right.py").write_text(dedent(RIGHT))
    monkeypatch.setattr(verifying, "_QUIET", 0.0)
    told: list[str] = []
    found = verifying.verify(verifying.Wanted(["test_right.py"], schedules=1, folder=str(tmp_path)), told.append)
    assert found["verdict"] == "pass", found
    assert told[0].startswith("starting pytest (")


def test_without_json_it_is_a_summary(cli: Any) -> None:
    cli.script(LANES, "lanes.py")
    cli.script(RACE, "test_race.py")
    done = cli("verify", "test_race.py", "--schedules", "3")
    first, *rest = done.stdout.splitlines()
    assert done.returncode == 1
    assert first == "fail: 1 finding(s), 1 proven patch(es) in 1 test(s) under the sanitizer and 3 schedules"
    assert "  explain: halstream explain unordered-access" in rest and "+    two.wait(one.record())" in rest


def test_the_schema_is_printed() -> None:
    done = CliRunner().invoke(app, ["verify", "--schema"])
    assert done.exit_code == 0
    assert json.loads(done.output)["properties"]["format"]["const"] == verifying.FORMAT


def test_the_example_of_the_page_has_all_keys_of_the_form() -> None:
    (shown,) = re.findall(r"(?ms)^```text\n(\{.*?^\})$", PAGE.read_text())
    found = checked(json.loads(shown))
    schema = json.loads(files("halstream._cli").joinpath("verify.schema.json").read_text())
    assert list(found) == list(schema["properties"])
    assert list(found["findings"][0]) == list(schema["$defs"]["finding"]["properties"])
