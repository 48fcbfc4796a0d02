"""The lint check that finds state of the Python package outside the Runtime object."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("module_state", ROOT / "tools" / "module_state.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "source",
    [
        "cache = {}",
        "cache: dict[int, int] = {}",
        "_cache = defaultdict(list)",
        "_cache: deque[int] = collections.deque()",
        "if True:\n    found = WeakValueDictionary()",
        "class A:\n    found: ClassVar[list[int]] = []",
        "TABLE = {}\ndef f():\n    TABLE[1] = 2",
        "TABLE = []\ndef f():\n    TABLE.append(2)",
        "class A:\n    ALL = set()\n    def f(self):\n        self.ALL.add(1)",
        "names = [n for n in range(3)]",
    ],
)
def test_a_container_is_found(tool: Any, tmp_path: Path, monkeypatch: Any, source: str) -> None:
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(source)
    (problem,) = tool.problems(path)
    assert problem.startswith("module.py:")
    assert "outside the Runtime object" in problem


@pytest.mark.parametrize(
    "source",
    [
        "TABLE = {1: 2}",
        "_NAMES = ['a']",
        "cache = runtime.keep('cache', {})",
        "state = runtime.add('state', State())",
        "count = 0",
        "__all__ = ['a']",
        "def f():\n    cache = {}\n    cache[1] = 2",
        "class A:\n    def __init__(self):\n        self.found = []",
    ],
)
def test_what_is_no_state_passes(tool: Any, tmp_path: Path, source: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert tool.problems(path) == []


def test_the_package_keeps_no_state_outside_the_runtime_object(tool: Any) -> None:
    assert tool.check() == []
