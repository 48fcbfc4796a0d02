"""tools/torch_without.py deletes a line of a module, wherever the module comes from, for make torch-programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

TOOL = Path(__file__).resolve().parents[2] / "tools/torch_without.py"


def run(folder: Path, module: str, line: str, program: str) -> str:
    """Return what a program printed that ran without the line."""
    (folder / "program.py").write_text(program)
    command = [sys.executable, TOOL, module, line, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_of_a_module_of_the_program_is_deleted(tmp_path: Path, end: str) -> None:
    (tmp_path / "library.py").write_bytes(
        end.join(["def call():", "    print('waited')", "    print('done')", ""]).encode()
    )
    found = run(tmp_path, "library", "print('waited')", "from library import call\ncall()")
    assert found.split("\n")[:2] == ["done", "torch_without: 1 lines deleted"]


def test_a_line_of_a_module_that_is_imported_already_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, module = "main_stream.wait_stream(streams[i])", "torch.nn.parallel._functions"
    program = f"from {module} import Scatter\nprint('wait_stream' in Scatter.forward.__code__.co_names)"
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    (tmp_path / "sitecustomize.py").write_text("import torch")  # as `halstream run --torch` does
    found = run(tmp_path, module, line, program)
    assert found.split("\n")[:2] == ["False", "torch_without: 1 lines deleted"]
