"""The list of the tree's files, which tools use in a checkout and in an unpacked sdist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE = (
    "build/x.c", ".venv/y.py", "a/__pycache__/z.py", "e.egg-info/SOURCES.txt", "lib.so", "hal/testdata/rapid/f",
    "halstream-1/z.py",
)  # fmt: skip
KEPT = ("setup.py", "hal/doc.go", "hal/testdata/trace.json", ".ci/run")


@pytest.fixture
def source_files(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import source_files

    return source_files


@pytest.mark.parametrize("inside", ["nothing", "another checkout"])
def test_without_a_checkout_what_a_build_makes_is_left_out(source_files: Any, inside: str, tmp_path: Path) -> None:
    if inside == "another checkout":
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
        (tmp_path / ".gitignore").write_text("tree/\n")
    tree = tmp_path / "tree"
    for name in (*MADE, *KEPT):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    assert {str(path.relative_to(tree)) for path in source_files.source_files(tree)} == set(KEPT)


def test_both_ways_find_the_same_files_here(source_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if source_files.git("rev-parse", "--show-toplevel", root=ROOT) is None:
        pytest.skip("not a checkout of git")
    known = set(source_files.source_files())
    monkeypatch.setattr(source_files, "git", lambda *_, **__: None)
    found = set(source_files.source_files())
    assert known - found == set()
    # What an editor or another test leaves for a moment has other suffixes.
    assert [p for p in found - known if p.suffix in {".py", ".go", ".c", ".h", ".md"} and ".git" not in p.parts] == []


def test_the_program_prints_the_names_with_a_suffix() -> None:
    command = [sys.executable, "tools/source_files.py", ".go"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "hal/doc.go" in printed and all(name.endswith(".go") for name in printed)
