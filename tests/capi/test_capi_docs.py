"""The example of docs/capi.md is compiled and run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import capi_help
import halstream as hs
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "capi.md"


@pytest.mark.needs("host")  # its device memory is the host's
@pytest.mark.parametrize("ordered", [True, False])
def test_the_example_runs(child: Callable[..., Any], tmp_path: Path, ordered: bool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (example,) = re.findall(r"(?ms)^```c\n(.*?)^```$", page)
    (program,) = re.findall(r"(?ms)^```text\n(.*?)^```$", page)
    (tmp_path / "example.c").write_text(example)
    capi_help.build(tmp_path / "example.c", tmp_path / "example.so", "-shared")
    if not ordered:
        program = program.replace("stream = hs.Stream()", "stream = hs.Stream(non_blocking=True)")
        program = re.sub(r"(?m)^hs\.synchronize\(\).*$", "", program).replace("assert y.numpy().tolist() ==", "print(")
        program = program.replace("[0, 2, 4, 6]", ")")
        lines = program.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("stream ="))
        body = ["    " + line for line in lines[start:]]
        program = "\n".join([*lines[:start], 'with hs.sanitize(on="collect") as report:', *body, "print(report)"])
    done = child(program)
    assert done.returncode == 0, done.stderr
    assert ("example::scale reads" in done.stdout) is not ordered
    assert hs.get_include() in str(Path(hs.__file__).parent / "include")
