"""The check of docstrings: which functions raise, and which of them are public."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "docstrings.py"

RAISES = '''    """Do something.

    Raises
    ------
    ValueError
        Always.
    """
    raise ValueError
'''


@pytest.fixture(scope="module")
def docstrings() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docstrings_tool", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def found(docstrings: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that says what the check finds in the text of a module."""
    monkeypatch.setattr(docstrings, "ROOT", tmp_path)

    def find(text: str) -> list[str]:
        path = tmp_path / "module.py"
        path.write_text(text)
        return list(docstrings.problems(path))

    return find


def test_a_function_that_raises_says_what(found: Any) -> None:
    assert found(f"def f():\n{RAISES}") == []
    (problem,) = found('def f():\n    """Do something."""\n    raise ValueError\n')
    assert problem.startswith("module.py:1: f raises")
    (problem,) = found("def f():\n    if f:\n        raise ValueError\n")
    assert problem.startswith("module.py:1: f raises")


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "try:\n        f()\n    except ValueError:\n        raise",
        "def g():\n        raise ValueError\n    return g",
        "class A:\n        def g(self):\n            raise ValueError",
    ],
    ids=["nothing", "what it caught", "a function in it", "a class in it"],
)
def test_what_a_function_does_not_raise_itself_needs_no_section(found: Any, body: str) -> None:
    assert found(f"def f():\n    {body}\n") == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def _f():\n    raise ValueError\n", []),
        ("class _A:\n    def f(self):\n        raise ValueError\n", []),
        ("class A:\n    def f(self):\n        raise ValueError\n    def _g(self):\n        raise ValueError\n", ["f"]),
        ("try:\n    def f():\n        raise ValueError\nfinally:\n    pass\n", ["f"]),
        ("if True:\n    def f():\n        raise ValueError\n", ["f"]),
    ],
)
def test_only_public_functions_and_methods_are_checked(docstrings: ModuleType, text: str, names: list[str]) -> None:
    public = [f for f in docstrings.functions(ast.parse(text)) if docstrings.raises(f)]
    assert [f.name for f in public] == names


def test_the_core_is_clean_and_exceptions_to_the_check_exist(docstrings: ModuleType) -> None:
    assert docstrings.check() == []
    for name in docstrings.EXCEPT:
        assert (docstrings.PACKAGE / name).exists()


def test_the_exit_code_is_that_of_the_check(docstrings: ModuleType) -> None:
    import subprocess

    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "docstrings: clean\n")
