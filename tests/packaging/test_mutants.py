"""The list of faults: one that does not compile proves nothing about the tests."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "mutants.py"

GO = "package small\n\nfunc Two() int { return 2 }\n"
PY = "def two():\n    return 2\n"


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants_tool", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a small Go module with a test that fails whatever the fault is, and a Python file."""
    (tmp_path / "go.mod").write_text("module small\n\ngo 1.21\n")
    (tmp_path / "hal").mkdir()
    (tmp_path / "hal" / "two.go").write_text(GO)
    (tmp_path / "two.py").write_text(PY)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("hal/two.go", "return 2", "return two", r"hal/two\.go:3:.*undefined: two"),
        ("hal/two.go", "return 2", 'return "2"', r"hal/two\.go:3:.*"),
        ("hal/two.go", "return 2", "unused := 1; return 2", r"hal/two\.go:3:.*declared and not used.*"),
        ("two.py", "return 2", "return (", r".*never closed.*"),
    ],
)
def test_a_fault_that_does_not_compile_is_not_detected(
    mutants: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, reason: str
) -> None:
    # A test that fails for any reason, which would look like one that detects the fault.
    failing = [sys.executable, "-c", "import sys; print('--- FAIL: TestS1_two'); sys.exit(1)"]
    monkeypatch.setattr(mutants, "command", lambda group, clauses: failing)
    before = (tree / file).read_text()
    bad = mutants.Mutant("bad", file, old, new, "S1")
    for attempt in (mutants.try_build, mutants.try_mutant):
        good, words = attempt(bad, tree)
        assert not good
        assert re.fullmatch("does not compile: " + reason, words), words
        assert (tree / file).read_text() == before
    fine = mutants.Mutant("fine", file, "return 2", "return 3", "S1")
    assert mutants.try_build(fine, tree) == (True, "compiles")
    assert mutants.try_mutant(fine, tree)[0]
