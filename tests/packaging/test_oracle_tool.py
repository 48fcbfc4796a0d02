"""The tool that runs NVIDIA's clients on the look-alike driver: what it takes for a failure."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython 3.10 has no reader of TOML")

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def tool() -> Iterator[Any]:
    sys.path.insert(0, str(TOOLS))
    spec = importlib.util.spec_from_file_location("oracle", TOOLS / "oracle.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["oracle"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(TOOLS))
    del sys.modules["oracle"]


REPORT = """<testsuites><testsuite>
<testcase classname="suite.cudadrv.test_a.TestA" name="test_one"/>
<testcase classname="suite.cudadrv.test_a.TestA" name="test_two"><skipped/></testcase>
<testcase classname="suite.cudadrv.test_a.TestA" name="test_three"><failure>E CODE_801</failure></testcase>
<testcase classname="" name="suite.cudadrv.test_b"><error>no module</error></testcase>
</testsuite></testsuites>"""


def test_a_report_is_read(tool: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    file.write_text(REPORT)
    found = tool.outcome(file)
    assert (found.passed, found.skipped) == (1, 1)
    assert found.failed == {"test_a.TestA.test_three": "E CODE_801", "test_b": "no module"}


@pytest.mark.parametrize(
    ("failed", "expected", "words"),
    [
        ({"test_a": "CODE_801"}, {"test_a": "CODE_801"}, []),
        ({"test_a": "CODE_801"}, {}, ["fails"]),
        ({"test_a": "CODE_700"}, {"test_a": "CODE_801"}, ["without"]),
        ({}, {"test_a": "CODE_801"}, ["take it off"]),
    ],
)
def test_what_is_not_as_listed_is_a_problem(
    tool: Any, failed: dict[str, str], expected: dict[str, str], words: list[str]
) -> None:
    groups = {name: tool.Group(text, "a reason") for name, text in expected.items()}
    lines = tool.judge(tool.Outcome(1, 0, failed), groups)
    assert len(lines) == len(words) and all(word in line for word, line in zip(words, lines, strict=True))


def test_each_listed_test_is_listed_once_and_with_a_reason(tool: Any) -> None:
    listed = tool.listed()
    assert listed and tool.EXPECTED.read_text().count('"test_') == len(listed)
    assert all(len(group.text) > 5 and group.reason.endswith(".") for group in listed.values())
