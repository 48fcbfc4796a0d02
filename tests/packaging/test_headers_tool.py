"""The tool that compares the declarations of the CUDA driver with NVIDIA's headers."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: A header in the way of the vendor's: opaque handles, enumerations, a newer form of a function under
#: the older one's name, and one that is declared only for the vendor's own use.
VENDOR = """
#pragma once
typedef enum { CUDA_ERROR_NOT_READY = 600, CUDA_ERROR_OUT_OF_MEMORY = 2 } CUresult;
typedef struct CUstream_st *CUstream;
#define CU_MEMHOSTALLOC_PORTABLE 0x01
#define cuEventElapsedTime cuEventElapsedTime_v2
extern "C" {
CUresult cuStreamQuery(CUstream stream);
CUresult cuEventElapsedTime(double *ms, CUstream start);
#if defined(__CUDA_API_VERSION_INTERNAL)
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUstream start);
#endif
}
typedef struct { unsigned id; int pad; union { long long space[8]; int cooperative; } value; } CUlaunchAttribute;
"""


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("headers", ROOT / "tools" / "headers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["headers"] = module
    spec.loader.exec_module(module)
    if shutil.which(module.compiler()[0]) is None:
        pytest.skip("there is no C++ compiler")
    yield module
    del sys.modules["headers"]


@pytest.fixture(scope="module")
def vendor(tool: Any) -> Any:
    """What the newest of NVIDIA's headers declares under the names of ours."""
    if not (tool.FOLDER / "13.5" / "installed").exists():
        pytest.skip("NVIDIA's headers are not installed: make header-check installs them")
    ours = tool.of_ours()
    facts = tool.of_vendor(tool.installed("13.5"), ours)
    assert tool.compare(ours, facts).problems == []
    return facts


@pytest.fixture
def described(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compare facts of ours with `VENDOR`."""
    monkeypatch.setattr(tool, "STRUCTURES", {})
    header = tmp_path / "cuda.h"
    header.write_text(VENDOR)

    def compare(*facts: tuple[str, str, str]) -> Any:
        ours = [tool.Fact(*fact) for fact in facts]
        return tool.compare(ours, tool.of_vendor(header, ours))

    return compare


def test_handles_and_enumerations_are_integers_here(described: Any) -> None:
    assert described(("function", "cuStreamQuery", "i32(u64)")) == (1, [], [])
    assert described(("function", "cuStreamQuery", "i32(i64)")).problems == [
        "function cuStreamQuery: i32(i64) here, e32(h64) in the vendor's header"
    ]
    assert len(described(("function", "cuStreamQuery", "i32(u64, u64)")).problems) == 1


def test_an_older_form_is_not_taken_for_the_newer_one_of_its_name(described: Any) -> None:
    assert described(("function", "cuEventElapsedTime", "i32(*f32, u64)")).same == 1
    assert described(("function", "cuEventElapsedTime_v2", "i32(*f64, u64)")).same == 1
    assert len(described(("function", "cuEventElapsedTime", "i32(*f64, u64)")).problems) == 1


def test_numbers_are_enumerators_and_macros(described: Any) -> None:
    assert described(("number", "CUDA_ERROR_NOT_READY", "600"), ("number", "CU_MEMHOSTALLOC_PORTABLE", "1")).same == 2
    assert len(described(("number", "CUDA_ERROR_NOT_READY", "601")).problems) == 1


def test_what_a_header_lacks_is_named_and_what_all_lack_is_an_error(tool: Any, described: Any) -> None:
    result = described(("function", "cuFuncLoad", "i32(u64)"), ("number", "CUDA_ERROR_ASSERT", "710"))
    assert result == (0, ["cuFuncLoad", "CUDA_ERROR_ASSERT"], [])
    assert tool.nowhere([result.absent, ["cuFuncLoad"]]) == ["cuFuncLoad is in no toolkit"]


def test_each_field_of_a_structure_has_its_pair(tool: Any) -> None:
    header = (ROOT / "cuda" / "symbols.h").read_text()
    assert tool.fields_without_pair(header) == []
    changed = header.replace("uint64_t maxSize;", "uint64_t maxSize, added;")
    assert tool.fields_without_pair(changed) == ["CUmemPoolProps.added"]


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("symbols.h", "(CUdevice *device, int ordinal)", "(CUdevice *device, int64_t ordinal)", "cuDeviceGet:"),
        ("symbols.h", "(int *count)", "(unsigned *count)", "cuDeviceGetCount:"),
        ("symbols.h", "(float *ms,", "(double *ms,", "cuEventElapsedTime:"),
        ("symbols.h", "uint64_t srcXInBytes, srcY;", "uint64_t srcY, srcXInBytes;", "CUDA_MEMCPY2D.srcY:"),
        ("symbols.h", "uint64_t words[8];", "char words[64];", "layout CUlaunchAttribute:"),
        ("numbers.h", "HS_NOT_READY, 600", "HS_NOT_READY, 601", "CUDA_ERROR_NOT_READY:"),
    ],
)
def test_a_changed_declaration_is_seen(
    tool: Any, vendor: Any, tmp_path: Path, name: str, old: str, new: str, problem: str
) -> None:
    for file in "symbols.h", "numbers.h":
        text = (ROOT / "cuda" / file).read_text()
        if file == name:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / file).write_text(text)
    problems = tool.compare(tool.of_ours(tmp_path), vendor).problems
    assert any(problem in line for line in problems), problems
