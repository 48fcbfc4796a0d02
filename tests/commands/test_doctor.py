"""`halstream doctor`, shell completion, and ``python -m halstream``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from halstream._cli import doctor
from halstream._cli.commands import app
from typer.testing import CliRunner


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "halstream", *words],
        capture_output=True, text=True, timeout=60, env={**os.environ, **environment},
    )  # fmt: skip


def test_the_report_as_json_names_everything_and_the_exit_code_says_if_it_is_enough() -> None:
    done = python("doctor", "--json", "--no-imports")
    report = json.loads(done.stdout)
    checks = {one["name"]: one for one in report["checks"]}
    for name in ("halstream", "python", "numpy", "backend host"):
        assert checks[name]["state"] == "ok", checks[name]
    for name in ("backend cuda", "backend ascend", "dialect torch", "dialect acl", "Go compiler", "C++ compiler",
                 "NVRTC", "extra cli", "limit of threads", "cache folder"):  # fmt: skip
        assert checks[name]["text"], name
    assert "2.15.0" in checks["dialect torch"]["text"]
    assert (report["ok"], done.returncode) == (True, 0)


def test_something_needed_that_is_broken_makes_the_exit_code_1() -> None:
    done = python("doctor", "--json", "--no-imports", HALSTREAM_HOST_DEVICES="none", HALSTREAM_BACKEND="")
    report = json.loads(done.stdout)
    broken = [one["name"] for one in report["checks"] if one["state"] == "broken"]
    assert (broken, report["ok"], done.returncode) == (["backend host"], False, 1)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("HALSTREAM_BACKEND", "gpu", 'no backend is called "gpu"'),
        ("HALSTREAM_BACKEND", "cuda", "libcuda.so.1 cannot be loaded"),
        ("HALSTREAM_STALL_S", "x", 'HALSTREAM_STALL_S is "x"'),
        ("HALSTREAM_SUPPRESSIONS", "nope", "the suppression file 'nope' cannot be read"),
    ],
)
def test_a_setting_that_calls_refuse_later_is_broken(variable: str, value: str, says: str) -> None:
    settings = {"HALSTREAM_CUDA_LIBRARY": "/nowhere/libcuda.so.1", "HALSTREAM_BACKEND": "", variable: value}
    done = python("doctor", "--json", "--no-imports", **settings)
    report = json.loads(done.stdout)
    broken = {one["name"]: one["text"] for one in report["checks"] if one["state"] == "broken"}
    assert (list(broken), report["ok"], done.returncode) == ([variable], False, 1)
    assert says in broken[variable]


def test_settings_that_are_right_have_a_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A path from the working folder, which a backend reads as well where it sanitizes.
    (tmp_path / "rules.txt").write_text("race:loader.py\n")
    (tmp_path / "numpy.py").write_text("raise ValueError('this is not the package')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALSTREAM_SANITIZE", "1")
    for name, value in (("BACKEND", "host"), ("STALL_S", "2"), ("SUPPRESSIONS", "rules.txt")):
        monkeypatch.setenv(f"HALSTREAM_{name}", value)
    found = {check.name: (check.state, check.text) for check in doctor.gather(imports=False)}
    assert found["HALSTREAM_BACKEND"] == ("ok", "host")
    assert found["HALSTREAM_STALL_S"] == ("ok", "2")
    assert found["HALSTREAM_SUPPRESSIONS"] == ("ok", "1 rule(s) in rules.txt")
    assert (found["backend host"][0], found["numpy"][0]) == ("ok", "ok"), found


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("x = \x0bPK\x85\x1d", "imported: SyntaxError: "),  # a file that is no text
        ("raise ValueError('damaged')", "imported: ValueError: damaged;"),
        ("raise OSError('damaged\\n  in two\\nlines')", "imported: OSError: damaged;"),
        ("raise ValueError('last') from OSError('first')", "imported: ValueError: last;"),
        ("def (", "imported: SyntaxError: "),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
        ("import sys; sys.exit(3)", "ended with code 3"),
    ],
)
def test_a_package_that_fails_to_import_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, says: str
) -> None:
    (tmp_path / "mindspore.py").write_text(body)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = doctor._dialect("mindspore", True)
    assert found.state == "differs"
    assert says in found.text
    assert "2.10.0" in found.text


@pytest.mark.parametrize(("version", "state"), [("2.10.3", "ok"), ("2.9.0", "differs")])
def test_the_version_of_a_package_is_compared_with_the_one_that_the_dialect_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, state: str
) -> None:
    (tmp_path / "mindspore.py").write_text("")
    about = tmp_path / f"mindspore-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mindspore\nVersion: {version}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = doctor._dialect("mindspore", True)
    assert found.state == state
    assert version in found.text


def test_a_folder_with_the_name_of_a_package_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mindspore").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "not installed" in doctor._dialect("mindspore", True).text


def test_a_low_limit_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(
        resource, "getrlimit", lambda number: (1000, 1000) if number == resource.RLIMIT_AS else (-1, -1)
    )
    found = {check.name: check for check in doctor._limits()}
    assert found["limit of address space"].broken
    assert not found["limit of threads"].broken


@pytest.mark.parametrize(
    ("shell", "ends"), [("bash", "complete "), ("zsh", "compdef "), ("fish", "complete --command")]
)
def test_completion_is_shown_for_a_shell(shell: str, ends: str) -> None:
    done = python("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0, done.stderr
    assert ends in done.stdout
    assert "_HALSTREAM_COMPLETE" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell: str) -> None:
    words = {"COMP_WORDS": "halstream do", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "halstream do",
             "_TYPER_COMPLETE_FISH_ACTION": "get-args"}  # fmt: skip
    done = python(_HALSTREAM_COMPLETE=f"complete_{shell}", **words)
    assert "doctor" in done.stdout
    assert "lint" not in done.stdout


def test_completion_is_installed(tmp_path: Path) -> None:
    done = python("--install-completion", "bash", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0, done.stderr
    assert any("_HALSTREAM_COMPLETE" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_the_module_is_the_command() -> None:
    done = python("--version")
    assert done.stdout.strip() == CliRunner().invoke(app, ["--version"]).output.strip()
