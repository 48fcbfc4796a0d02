"""The tool that runs everything on a GPU's machine: its steps, its limits, and where results go."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_driver
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "gpu.py"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the steps."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("_gpu_steps")


@pytest.fixture
def bench(steps: Any, tmp_path: Path) -> Any:
    """A place for steps to run in, with an empty pack."""
    pack = tmp_path / "pack"
    pack.mkdir()
    return steps.Bench(tmp_path / "run", "", fake=False, pack=pack)


def program(bench: Any, text: str) -> None:
    """Put a script in the place of the conformance suite."""
    path = bench.pack / "cuda.test"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_a_driver_the_message_is_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "--library", "/nowhere/libcuda.so.1"],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no CUDA driver" in done.stderr and "silicon" in done.stderr


def test_a_command_that_hangs_is_ended_with_its_children(bench: Any, tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        code, _ = bench.run("hang", ["sh", "-c", f"sleep 600 > {held} & wait"], 1.0)
        assert code is None
        os.set_blocking(reader, True)
        assert os.read(reader, 1) == b"", "the end of the file comes when the child is gone, too"
    finally:
        os.close(reader)


def test_what_a_step_raises_is_its_outcome(steps: Any, bench: Any) -> None:
    def broken(bench: Any) -> Any:
        raise OSError("no space")

    outcome = steps.take("broken", broken, bench)
    assert (outcome["outcome"], "no space" in outcome["detail"]) == ("failed", True)


def test_a_pack_without_a_wheel_is_named(steps: Any, bench: Any) -> None:
    outcome = steps.install(bench)
    assert (outcome["outcome"], "make gpu-pack" in outcome["detail"]) == ("failed", True)


def test_conformance_counts_cases(steps: Any, bench: Any) -> None:
    program(bench, "echo '--- PASS: TestConformance (1s)'; echo '    --- PASS: TestConformance/S1_x (0s)'")
    outcome = steps.conformance(bench)
    assert (outcome["outcome"], outcome["counts"]) == ("passed", {"pass": 2})


def test_conformance_names_what_failed(steps: Any, bench: Any) -> None:
    program(bench, "echo '--- FAIL: TestConformance/S1_x (0s)'; exit 1")
    outcome = steps.conformance(bench)
    assert (outcome["outcome"], outcome["failed"]) == ("failed", ["TestConformance/S1_x"])


def test_conformance_names_what_hangs(steps: Any, bench: Any) -> None:
    lines = ["\tTest: TestConformance/S1_x", "panic: test timed out after 1s", "\trunning tests:"]
    lines += ["\t\tTestConformance (1s)", "\t\tTestConformance/S2_y (1s)", "", "goroutine 1 [running]:"]
    (bench.pack / "said").write_text("\n".join(lines))
    program(bench, f"cat {bench.pack / 'said'}; exit 2")
    outcome = steps.conformance(bench)
    assert (outcome["failed"], outcome["hung"]) == (["TestConformance/S1_x"], ["TestConformance/S2_y"])
    assert "TestConformance/S2_y hangs" in outcome["detail"]


def test_conformance_without_a_case_is_no_success(steps: Any, bench: Any) -> None:
    program(bench, "echo 'testing: warning: no tests to run'; echo PASS")
    assert steps.conformance(bench)["outcome"] == "failed"


def test_an_absent_sanitizer_is_no_failure(steps: Any, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SANITIZERS", ())
    assert steps.sanitizer(bench)["outcome"] == "absent"


def test_the_sanitizer_counts_no_codes_of_calls(
    steps: Any, bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, said = tmp_path / "compute-sanitizer", tmp_path / "said"
    tool.write_text(f"#!/bin/sh\necho \"$@\" > {said}\necho '--- PASS: TestConformance (1s)'\n")
    tool.chmod(0o755)
    program(bench, "exit 1")
    monkeypatch.setattr(steps, "SANITIZERS", (str(tool),))
    bench.fake = False
    assert steps.sanitizer(bench)["outcome"] == "passed"
    assert "--report-api-errors no" in said.read_text()


def test_files_that_need_an_absent_package_are_found(steps: Any, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import json\nfrom no_such_package.part import thing\n")
    (tmp_path / "test_two.py").write_text("import json\nimport helper\nimport halstream\n")
    (tmp_path / "helper.py").write_text("")
    found = steps.lacking(tmp_path)
    assert {Path(path).name: name for path, name in found.items()} == {"test_one.py": "no_such_package"}


def test_results_of_tests_are_counted_with_reasons(steps: Any, tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="a" name="good"/>'
        '<testcase classname="a" name="bad"><failure message="x"/></testcase>'
        '<testcase classname="a" name="not"><skipped message="no schedules"/></testcase>'
        "</testsuite></testsuites>"
    )
    counts, failed, skipped = steps.reports.junit(report)
    assert counts == {"passed": 1, "failed": 1, "skipped": 1}
    assert (failed, skipped) == (["a::bad"], {"no schedules": 1})


def test_a_suite_that_is_interrupted_reports_its_results_so_far(steps: Any) -> None:
    text = "tests/a.py::test_x PASSED [ 1%]\ntests/a.py::test_y FAILED [ 2%]\ntests/a.py::test_z[1] "
    counts, failed, _ = steps.reports.so_far(text)
    assert counts == {"passed": 1, "failed": 1}
    assert failed == ["tests/a.py::test_y", "tests/a.py::test_z[1] (hangs)"]


def test_results_of_the_look_alike_stay_out_of_the_documents(
    steps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = importlib.import_module("gpu")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "RESULTS", tmp_path / "docs" / "results")
    device = {"devices": [{"name": "A Big GPU 80GB"}]}
    assert tool.target(device, True).parent == tmp_path / "build" / "results"
    first = tool.target(device, False)
    assert (first.parent, first.name.startswith("a-big-gpu-80gb-")) == (tmp_path / "docs" / "results", True)
    first.write_text("{}")
    assert tool.target(device, False).name != first.name, "a second run of a day does not overwrite the first"


def test_the_questions_to_a_driver_have_answers(tmp_path: Path) -> None:
    driver = fake_driver.require()
    output = tmp_path / "results.json"
    words = ["--only", "probes", "--library", driver, "--output", output, "--folder", tmp_path / "run"]
    done = subprocess.run(
        [sys.executable, str(TOOL), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(output.read_text())
    assert (results["silicon"], results["device"]["devices"][0]["name"]) == (False, "fake")
    answers = results["steps"]["probes"]["data"]["answers"]
    assert len(answers) == 17
    assert not [name for name, entry in answers.items() if "failed" in entry["answer"]]
