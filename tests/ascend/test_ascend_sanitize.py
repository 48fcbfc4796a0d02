"""HALSTREAM_SANITIZE finds what nothing orders in programs in C."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from ascend_help import PROGRAMS, Compiled, Run

ON = {"HALSTREAM_SANITIZE": "1"}


def test_N10_two_copies_without_a_wait_are_reported(compiled: Compiled, run: Run) -> None:
    program = compiled(PROGRAMS / "unordered.c")
    done = run(program, "no wait", env=ON)
    assert (done.returncode, done.stdout) == (66, "done\n"), done.stderr
    assert done.stderr.count("unordered access: two operations touch the same 4096 bytes") == 1
    assert "bytes 0 to 4095 of device memory of 4096 bytes" in done.stderr
    calls = re.search(
        r"  1\. copy writes on stream (\d+).*\n +(.+)\n  2\. copy reads on stream (\d+).*\n +(.+)\n", done.stderr
    )
    assert calls and calls[1] != calls[3], done.stderr
    lines = [
        line
        for line, text in enumerate((PROGRAMS / "unordered.c").read_text().splitlines(), 1)
        if "aclrtMemcpyAsync" in text
    ]
    for place, line in zip((calls[2], calls[4]), lines, strict=True):
        assert f"unordered.c:{line}, in main (" in place
    if shutil.which("addr2line"):
        offsets = [place.rpartition("+")[2].rstrip(")") for place in (calls[2], calls[4])]
        words = ["addr2line", "-e", str(program), *offsets]
        named = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert [int(number) for number in re.findall(r"unordered\.c:(\d+)", named)] == lines


def test_N10_places_in_c_plus_plus_have_lines_and_names(compiled: Compiled, run: Run) -> None:
    source = PROGRAMS / "templates.cc"
    done = run(compiled(source, "c++"), env=ON)
    lines = enumerate(source.read_text().splitlines(), 1)
    line = next(number for number, text in lines if "the unordered call" in text)
    assert done.stderr.count(f"templates.cc:{line}, in Filler<char>::run(char) const (") == 2, done.stderr


def test_N10_a_program_that_waits_has_no_report(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "unordered.c"), "wait", env=ON)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_N10_a_refilled_source_is_reported(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "unordered.c"), "refill", env=ON)
    assert done.returncode == 66
    assert "pinned memory refilled: 4096 bytes changed" in done.stderr


def test_N10_an_exit_in_a_function_reports(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "unordered.c"), "exit", env=ON)
    assert (done.returncode, done.stdout) == (66, "done\n"), done.stderr
    assert "unordered access: two operations touch the same 16 bytes" in done.stderr


@pytest.mark.parametrize("name", ["events", "functions", "orders", "threads", "handles"])
def test_N10_programs_without_a_fault_have_no_report(compiled: Compiled, run: Run, name: str) -> None:
    done = run(compiled(PROGRAMS / f"{name}.c"), env=ON)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_N10_an_unknown_value_is_refused(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "unordered.c"), "wait", env={"HALSTREAM_SANITIZE": "1,pages"})
    assert done.returncode == 1
    assert 'HALSTREAM_SANITIZE is "1,pages"' in done.stderr


@pytest.mark.parametrize(("how", "says"), [("no wait", "call reads on stream"), ("host", "the host reads")])
def test_N18_declared_accesses_are_checked(compiled: Compiled, run: Run, how: str, says: str) -> None:
    done = run(compiled(PROGRAMS / "declared.c"), how, env=ON)
    assert (done.returncode, done.stdout) == (66, "done\n"), done.stderr
    assert "call writes on stream" in done.stderr
    assert says in done.stderr


def test_N18_declared_accesses_that_are_ordered_are_not_reported(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "declared.c"), "wait", env=ON)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
