"""The programs of docs/ascend.md and docs/tasks.md are compiled and run."""

from __future__ import annotations

import re
from pathlib import Path

from ascend_help import ROOT, Compiled, Run


def test_the_example_prints_what_the_page_shows(compiled: Compiled, run: Run, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ascend.md").read_text()
    [program] = re.findall(r"(?ms)^```c\n(.*?)^```$", page)
    [shown] = re.findall(r"(?ms)^```text\n(.*?)^```$", page)
    source = tmp_path / "example.c"
    source.write_text(program)
    done = run(compiled(source))
    assert (done.returncode, done.stdout) == (0, shown), done.stderr


def test_the_first_task_prints_the_report_of_the_page(compiled: Compiled, run: Run, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tasks.md").read_text()
    [program] = re.findall(r"(?ms)^```c\n// file: sum.c\n(.*?)^```$", page)
    [shown] = re.findall(r"(?ms)^```text\n([^`]*?sum\.c.*?)^```$", page)
    source = tmp_path / "sum.c"
    source.write_text(program)
    done = run(compiled(source), env={"HALSTREAM_SANITIZE": "1"})
    printed = re.sub(r"\([\w-]+\+0x\w+\)", "(sum+0x...)", done.stderr.replace(f"{tmp_path}/", ""))
    assert (done.returncode, done.stdout) == (66, "the last number is 999\n"), done.stderr
    assert shown in printed + "\n", printed
