"""The lint check that finds imports inside functions, and import cycles."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("imports", ROOT / "tools" / "imports.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["imports"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["imports"]


def problems(tool: Any, root: Path, wanted: dict[tuple[str, str], str] | None = None, **sources: str) -> list[str]:
    package = root / "python" / "p"
    for name, source in {"__init__": "", **sources}.items():
        path = package / (name.replace("__of__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    found: list[str] = tool.problems(package, wanted or {}, set())
    return found


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    from . import b",
        "def f():\n    from .b import x",
        "def f():\n    import p.b",
        "def f():\n    if True:\n        from p.b import x",
        "class A:\n    async def f(self):\n        from .b import x",
    ],
)
def test_an_import_inside_a_function_is_found(tool: Any, tmp_path: Path, source: str) -> None:
    (problem,) = problems(tool, tmp_path, a=source, b="x = 1")
    assert problem.startswith("python/p/a.py:")
    assert "p.b is imported inside a function" in problem


def test_a_listed_import_passes(tool: Any, tmp_path: Path) -> None:
    assert problems(tool, tmp_path, {("p.a", "p.b"): "slow"}, a="def f():\n    from . import b", b="") == []


def test_a_listed_import_that_no_longer_exists_is_reported(tool: Any, tmp_path: Path) -> None:
    (problem,) = problems(tool, tmp_path, {("p.a", "p.b"): "slow"}, a="from . import b", b="")
    assert "which it does not" in problem


@pytest.mark.parametrize("source", ["from . import a", "def f():\n    from . import a", "from .a import x"])
def test_a_cycle_is_found(tool: Any, tmp_path: Path, source: str) -> None:
    found = problems(tool, tmp_path, {("p.b", "p.a"): "hides it"} if "def" in source else {}, a="import p.b", b=source)
    assert found == ["p.a and p.b import each other"]


def test_a_cycle_through_a_package_is_found(tool: Any, tmp_path: Path) -> None:
    sources = {"s__of____init__": "from . import one", "s__of__one": "from .. import a", "s__of__two": ""}
    assert problems(tool, tmp_path, a="from .s import two", **sources) == ["p.a and p.s and p.s.one import each other"]


@pytest.mark.parametrize(
    "source",
    [
        "from . import b\ndef f():\n    import json",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import c",
        "import p.b",
    ],
)
def test_other_imports_pass(tool: Any, tmp_path: Path, source: str) -> None:
    assert problems(tool, tmp_path, a=source, b="", c="from . import a") == []


def test_the_package_has_neither(tool: Any) -> None:
    assert tool.check() == []


def test_an_import_of_a_higher_layer_is_found(tool: Any, tmp_path: Path) -> None:
    package = tmp_path / "python" / "p"
    package.mkdir(parents=True)
    sources = {"__init__": "from . import low, high", "low": "from . import high", "high": "from . import low"}
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    found = [line for line in tool.problems(package, {}, set(), ("low", "high")) if "layer" in line]
    assert found == ["python/p/low.py:1: p.high is in a higher layer; see LAYERS in tools/imports.py"]
