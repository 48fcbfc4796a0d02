"""``halstream info``, and what the command line says where it cannot be used."""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream.cli import app
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
Hide = Callable[..., dict[str, str]]
#: A machine without a driver, whatever this one has.
NO_DRIVER = {"HALSTREAM_CUDA_LIBRARY": "/nowhere/libcuda.so.1"}


def told(cli: Any, env: dict[str, str] | None = None) -> dict[str, Any]:
    """Return what ``info --json`` prints."""
    done = cli("info", "--json", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_info_names_version_backends_and_devices(cli: Any) -> None:
    found = told(cli, {"HALSTREAM_BACKEND": "host", "HALSTREAM_HOST_DEVICES": "3", "HALSTREAM_HOST_MEMORY": "1048576"})
    assert found["version"] == hs.__version__
    # A free-threaded CPython has no stable interface, and wheels of its own.
    free_threaded = "cp{}{}t".format(*sys.version_info[:2])
    assert (free_threaded if sysconfig.get_config_var("Py_GIL_DISABLED") else "cp310-abi3") in found["wheel"]
    assert (found["backend"], found["backend_reason"]) == ("host", None)
    backends = {backend["name"]: backend for backend in found["backends"]}
    assert list(backends) == ["host", "cuda", "ascend"]
    devices = backends["host"]["devices"]
    assert [(d["ordinal"], d["memory_free"], d["memory_total"]) for d in devices] == [
        (i, 1 << 20, 1 << 20) for i in range(3)
    ]
    assert all("host device" in d["name"] for d in devices)


@pytest.mark.parametrize("name", ["cuda", "ascend"])
def test_info_has_the_reason_why_a_backend_is_absent(cli: Any, name: str) -> None:
    (backend,) = (b for b in told(cli, NO_DRIVER)["backends"] if b["name"] == name)
    assert (backend["usable"], backend["devices"]) == (False, [])
    assert name in backend["reason"]


def test_info_works_where_the_chosen_backend_is_absent(cli: Any) -> None:
    found = told(cli, {"HALSTREAM_BACKEND": "cuda", **NO_DRIVER})
    assert found["backend"] is None and "cuda" in found["backend_reason"]
    assert [b["usable"] for b in found["backends"]] == [True, False, False]
    done = cli("info", env={"HALSTREAM_BACKEND": "cuda", **NO_DRIVER})
    assert done.returncode == 0 and "backend in use: none: " in done.stdout


@pytest.mark.parametrize("value", ["cpu", "HOST "])
def test_info_works_where_the_environment_is_wrong(cli: Any, value: str) -> None:
    found = told(cli, {"HALSTREAM_BACKEND": value})
    assert found["backend"] is None and value in found["backend_reason"]


def test_info_lists_every_environment_variable(cli: Any) -> None:
    found = told(cli, {"HALSTREAM_CACHE_DIR": "/tmp/x", "HALSTREAM_HOST_DEVICE": "1"})
    variables = {variable["name"]: variable for variable in found["environment"]}
    named = re.findall(r"(?m)^\| `(HALSTREAM_\w+)`", (ROOT / "docs" / "environment.md").read_text())
    assert named and set(named) <= variables.keys()
    assert variables["HALSTREAM_CACHE_DIR"]["value"] == "/tmp/x"
    assert variables["HALSTREAM_HOST_DEVICES"]["value"] is None
    assert variables["HALSTREAM_HOST_DEVICE"]["meaning"] == "not a variable that halstream reads"


def test_info_has_whether_nvrtc_was_found(nvrtc: None, cli: Any) -> None:
    nvrtc = told(cli)["nvrtc"]
    assert nvrtc["found"] and re.fullmatch(r"\d+\.\d+", nvrtc["version"]) and "nvrtc" in nvrtc["library"]


def test_info_as_text_has_the_same(cli: Any) -> None:
    done = cli("info", env={"HALSTREAM_HOST_DEVICES": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    for text in (hs.__version__, "host device 0", "GiB", "absent: ", "HALSTREAM_HOST_DEVICES", "NVRTC"):
        assert text in done.stdout


def test_info_cuts_no_name_in_a_narrow_terminal(cli: Any) -> None:
    done = cli("info", env={"COLUMNS": "40"})
    assert "…" not in done.stdout
    # The cells of the first column, one below the other.
    table = done.stdout.partition("Environment")[2]
    cells = "".join(line.split("│")[1].strip() for line in table.splitlines() if line.startswith("│"))
    assert "HALSTREAM_BACKENDHALSTREAM_CUDA_LIBRARYHALSTREAM_ASCEND_LIBRARY" in cells


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_the_message_names_what_to_install(cli: Any, hide: Hide, package: str) -> None:
    done = cli("info", env=hide(package))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert package in line and "pip install 'halstream[cli]'" in line


def test_an_import_of_the_module_needs_no_extra(cli: Any, hide: Hide) -> None:
    cli.script("import halstream.cli as c; print(c.main.__name__)")
    done = cli("_child", json.dumps({"spec": "fifo", "result": "a", "trace": False, "sanitize": False}), "prog.py",
               env=hide("typer", "rich", "perfetto"))  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "main\n"), done.stderr


def test_version_and_help() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).output == f"{hs.__version__}\n"
    for args in (["--help"], ["-h"]):
        done = runner.invoke(app, args)
        assert done.exit_code == 0
        assert all(command in done.output for command in ("info", "run", "replay", "trace"))


@pytest.mark.parametrize("args", [["nothing"], ["run"], ["replay", "hs1-fifo-00000000-cd"], ["info", "--nothing"], []])
def test_a_command_that_is_none_ends_with_2(args: list[str]) -> None:
    assert CliRunner().invoke(app, args).exit_code == 2


@pytest.mark.parametrize("args", [["run"], ["trace"], ["replay", "hs1-fifo-00000000-cd"]])
def test_a_missing_script(args: list[str]) -> None:
    done = CliRunner().invoke(app, [*args, "/nowhere/prog.py"])
    assert done.exit_code == 2
    assert done.stderr == "halstream: there is no script '/nowhere/prog.py'\n"


def test_a_folder_without_main(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(tmp_path)])
    assert (done.exit_code, "has no __main__.py" in done.stderr) == (2, True)
