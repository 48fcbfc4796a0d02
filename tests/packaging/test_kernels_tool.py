"""The tool that hands every kernel of the tree to NVIDIA's compilers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

HEAD = ".version 6.0\n.target sm_50\n.address_size 64\n"
PTX = HEAD + ".visible .entry one() { ret; }\n"


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("kernels", ROOT / "tools" / "kernels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        spec.loader.exec_module(module)
    yield module
    del sys.modules["kernels"]


def test_programs_are_found_in_strings_and_in_programs_in_strings(tool: Any) -> None:
    inner = f"    import x\n    p = '''{PTX}'''\n"
    source = f'A = """{PTX}"""\ndef test():\n    child({inner!r})\n    f("__global__ void f() {{}}")\n'
    found, problems = tool.found_in("t.py", source)
    assert sorted(kernel.is_ptx for kernel in found) == [False, True, True]
    assert problems == []


def test_a_constant_of_go_begins_with_the_one_before_it(tool: Any) -> None:
    source = f"const (\n\thead = `{HEAD}`\n\tone = head + `.visible .entry one() {{ ret; }}`\n)\n"
    found, problems = tool.found_in("t.go", source)
    assert [kernel.text for kernel in found] == [PTX.rstrip("\n")]
    assert problems == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("t.py", 'A = f"{head}.visible .entry one() {{ ret; }}"'),
        ("t.c", f'const char *one = "{HEAD!r}.visible .entry one()";'),
        ("t.md", "__global__ void f() {}"),
    ],
)
def test_a_kernel_that_cannot_be_read_is_a_problem(tool: Any, path: str, source: str) -> None:
    found, problems = tool.found_in(path, source)
    assert found == []
    assert len(problems) == 1 and path in problems[0] and "LEFT_OUT" in problems[0]


def test_every_kernel_of_this_tree_is_read_or_listed(tool: Any) -> None:
    kernels = []
    for path, source in tool.tracked():
        found, problems = tool.found_in(path, source)
        assert problems == []
        kernels += found
    paths = {kernel.path for kernel in kernels}
    assert {"hal/haltest/ptx.go", "benchmarks/gpu/ptx.py", "tests/conformance/test_kernel_compile.py"} <= paths
    assert paths.isdisjoint({"tools/kernels.py", "tests/packaging/test_kernels_tool.py"})
    for path, words, _ in tool.REFUSED:
        assert any(kernel.path == path and words in kernel.text for kernel in kernels), path


def test_an_unexpected_refusal_and_an_unexpected_success_are_problems(tool: Any) -> None:
    good = tool.Kernel("t.py", PTX)
    path, words, expected = tool.REFUSED[0]
    wrong = tool.Kernel(path, PTX.replace("ret", words))
    assert tool.judge([good], "x", lambda kernel: "") == []
    assert tool.judge([good], "x", lambda kernel: "ptxas error") == ["t.py (.version 6.0) with x: ptxas error"]
    assert tool.judge([wrong], "x", lambda kernel: f"line 4: {expected}") == []
    assert "it was compiled" in tool.judge([wrong], "x", lambda kernel: "")[0]
    assert "another reason" in tool.judge([wrong], "x", lambda kernel: "out of memory")[0]


def test_the_kernels_of_a_source_have_names_for_the_compiler(tool: Any) -> None:
    source = 'extern "C" __global__ void a(int x) {}\ntemplate <typename T> __global__ void b(T *x) {}'
    assert tool.names(source) == ["a", "b<float>"]
