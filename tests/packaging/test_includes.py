"""The lint check that finds circles of includes between the C and C++ files of a folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def tool() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        yield importlib.import_module("includes")
    for name in "includes", "imports", "source_files":
        sys.modules.pop(name, None)


def problems(tool: Any, root: Path, listed: dict[str, list[list[str]]] | None = None, **includes: str) -> list[str]:
    """Return what is found in a folder of files, each with the names of those that it includes."""
    files = []
    for name, included in includes.items():
        path = root / "d" / name.replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f'#include "{other}"\n' for other in included.split()))
        files.append(path)
    found: list[str] = tool.problems(root, files, listed or {})
    return found


def test_a_source_and_its_header_are_one(tool: Any, tmp_path: Path) -> None:
    found = problems(tool, tmp_path, a_c="a.h b.h", a_h="", b_cpp="b.h a.h", b_h="")
    assert found == ["d: a and b include each other"]


def test_layers_are_no_circle(tool: Any, tmp_path: Path) -> None:
    layers = {"a_c": "a.h b.h c.h", "a_h": "c.h", "b_c": "b.h c.h", "b_h": "", "c_h": "<d.h> other/a.h"}
    assert problems(tool, tmp_path, **layers) == []


def test_a_listed_circle_passes_until_it_is_gone(tool: Any, tmp_path: Path) -> None:
    listed = {"d": [["a", "b"]]}
    assert problems(tool, tmp_path, listed, a_c="b.h", b_c="a.h", a_h="", b_h="") == []
    assert problems(tool, tmp_path, listed, a_c="b.h", b_c="", a_h="", b_h="") == [
        "tools/includes.py lists a and b of d, which do not"
    ]
    assert problems(tool, tmp_path, {"e": [["a", "b"]]}, a_c="") == ["tools/includes.py lists e, which is not there"]


def test_the_source_tree_has_no_other_circles(tool: Any) -> None:
    assert tool.check() == []
