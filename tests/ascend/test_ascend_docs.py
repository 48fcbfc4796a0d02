"""The example of docs/ascend.md is compiled and run."""

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
