"""What a type checker knows of the extension."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """\
from halstream import _native

query: int = _native.stream_query(1)
name: str = _native.device_name(0)
raw: int = _native.raw("stream_query")(1)
_native.stream_qurey(1)
_native.raw("stream_qurey")
_native.stream_query("1")
_native.raw("stream_query")()
text: str = _native.stream_query(1)
"""

#: Line of the program -> code of mypy's error in it.
ERRORS = {6: "attr-defined", 7: "call-overload", 8: "arg-type", 9: "call-arg", 10: "assignment"}


@pytest.mark.timeout(240)
def test_mypy_finds_a_misspelled_function_of_the_extension(tmp_path: Path) -> None:
    """Each function has its name, parameters and result; a name there is none of is an error."""
    pytest.importorskip("mypy", reason="mypy is installed for development only")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=220)
    found = re.findall(r"(?m)^.*program\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout)
    expected = {str(line): code for line, code in ERRORS.items()}
    assert (dict(found), done.stderr) == (expected, ""), done.stdout
