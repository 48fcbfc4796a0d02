"""Kernels compiled for CUDA: NVRTC needs no GPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream import _compiled
from halstream._kernel import _nvrtc

pytestmark = pytest.mark.usefixtures("backend")

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
template <typename T> __global__ void scale(T *x, T factor) { x[threadIdx.x] *= factor; }
"""
SIGNATURE = "float32 a, in float32 *x, inout float32 *y, uint32 n"


@pytest.fixture
def kernel() -> hs.Kernel:
    return hs.Kernel(SOURCE, name="saxpy", signature=SIGNATURE)


@pytest.fixture
def cache(nvrtc: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for compiled kernels."""
    monkeypatch.setenv("HALSTREAM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def stored(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def test_a_source_is_compiled_to_ptx_and_to_a_cubin(kernel: hs.Kernel, cache: Path) -> None:
    ptx, cubin = kernel.compile("compute_80"), kernel.compile("sm_80")
    assert ptx.entry == cubin.entry == "saxpy"
    assert b".target sm_80" in ptx.code and b".visible .entry saxpy(" in ptx.code and ptx.code.endswith(b"\0")
    assert cubin.code.startswith(b"\x7fELF")
    assert kernel.compile("sm_80") is cubin


def test_an_instance_of_a_template_is_found_by_its_lowered_name(cache: Path) -> None:
    kernel = hs.Kernel(SOURCE, name="scale<double>", signature="inout float64 *x, float64 factor")
    made = kernel.compile("compute_80")
    assert made.entry.encode() in made.code and "scale" in made.entry and made.entry != "scale"


def test_ptx_and_cubins_come_back_as_they_are_and_can_be_kernels(kernel: hs.Kernel, cache: Path) -> None:
    ptx, cubin = kernel.compile("compute_80").code, kernel.compile("sm_80").code
    stored_before = stored(cache)
    for code in (ptx, ptx.decode().rstrip("\0"), cubin):
        again = hs.Kernel(code, name="saxpy", signature=SIGNATURE).compile("sm_90")
        assert again.code == (cubin if code is cubin else ptx)
    assert stored(cache) == stored_before


def test_a_compile_error_has_the_compilers_log(cache: Path) -> None:
    kernel = hs.Kernel(SOURCE.replace("y[i]", "z[i]"), name="saxpy", signature=SIGNATURE)
    with pytest.raises(hs.CompileError, match="kernel saxpy does not compile for sm_80") as caught:
        kernel.compile("sm_80")
    assert 'saxpy.cu(4): error: identifier "z" is undefined' in caught.value.log
    assert caught.value.log in str(caught.value)
    assert caught.value.code == 6
    assert stored(cache) == []


def test_a_kernel_that_the_source_does_not_have_is_a_compile_error(cache: Path) -> None:
    with pytest.raises(hs.CompileError, match="other"):
        hs.Kernel(SOURCE, name="other", signature="").compile("sm_80")


def test_a_wrong_option_and_a_wrong_architecture_are_refused(kernel: hs.Kernel, cache: Path) -> None:
    with pytest.raises(hs.InvalidValueError, match="no architecture"):
        kernel.compile("hopper")
    with pytest.raises(hs.CompileError):
        kernel.compile("sm_10")
    with pytest.raises(hs.CompileError, match="--such"):
        hs.Kernel(SOURCE, name="saxpy", signature="", options="--such").compile("sm_80")


def test_the_cache_is_used_by_source_options_and_architecture(
    kernel: hs.Kernel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def same(**changes: Any) -> hs.Kernel:
        return hs.Kernel(changes.pop("cuda", SOURCE), name="saxpy", signature=SIGNATURE, **changes)

    first = kernel.compile("compute_80")
    assert len(stored(cache)) == 1
    kernel.compile("sm_80")
    same(options=["-DX=1"]).compile("compute_80")
    same(cuda=SOURCE + "// changed").compile("compute_80")
    assert len(stored(cache)) == 4

    def refuse(*args: Any) -> Any:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(_nvrtc, "_compile", refuse)
    found = same().compile("compute_80")
    assert (found.code, found.entry) == (first.code, first.entry)
    with pytest.raises(AssertionError, match="compiled again"):
        same(options=["-I/somewhere"]).compile("compute_80")  # what it includes may have changed


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_file_of_the_cache_is_made_again(cache: Path, damage: str) -> None:
    def compile() -> bytes:
        return hs.Kernel(SOURCE, name="saxpy", signature=SIGNATURE).compile("sm_80").code

    want = compile()
    [path] = stored(cache)
    data = path.read_bytes()
    path.write_bytes({"cut": data[:-9], "changed": data[:-1] + bytes([data[-1] ^ 1]), "empty": b""}[damage])
    assert compile() == want
    assert path.read_bytes() == data


def test_a_cache_that_cannot_be_written_costs_only_time(kernel: hs.Kernel, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    assert kernel.compile("sm_80").code


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HALSTREAM_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert _compiled.cache_folder() == Path("/somewhere/halstream")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/me")
    assert _compiled.cache_folder() == Path("/me/.cache/halstream")


def test_what_is_compiled_for_a_device(nvrtc: None, monkeypatch: pytest.MonkeyPatch) -> None:
    known = _nvrtc.supported()
    assert known == tuple(sorted(known)) and 80 in known
    monkeypatch.setattr(_nvrtc, "supported", lambda driver: (75, 80, 90))
    assert _nvrtc.target(9, 0) == "sm_90"
    assert _nvrtc.target(8, 6) == "compute_80"
    assert _nvrtc.target(12, 1) == "compute_90"
    with pytest.raises(hs.NotSupportedError, match=r"as old as 6\.1; its oldest is 75"):
        _nvrtc.target(6, 1)


def test_without_nvrtc_the_error_names_what_to_install(child: Any, tmp_path: Path) -> None:
    done = child(
        """
        import importlib.util, sys
        real = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *more: None if name == "nvidia" else real(name, *more)
        import halstream as hs
        from halstream._kernel import _nvrtc
        _nvrtc._MAJORS = (99,)
        try:
            hs.Kernel("", name="k", signature="").compile("sm_80")
        except hs.BackendAbsentError as exc:
            assert "pip install 'halstream[cuda]'" in str(exc), exc
        else:
            raise AssertionError("no error")
        """,
        env={"HALSTREAM_CACHE_DIR": str(tmp_path), "CUDA_PATH": "", "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr


def test_the_compiler_is_not_newer_than_the_driver_if_there_is_a_choice(child: Any, tmp_path: Path) -> None:
    source = tmp_path / "nvrtc.c"
    source.write_text(
        "int nvrtcVersion(int *major, int *minor) { *major = MAJOR; *minor = 5; return 0; }\n"
        "const char *nvrtcGetErrorString(int code) { return 0; }\n"
    )
    folder = tmp_path / "toolkit" / "lib64"
    folder.mkdir(parents=True)
    for major in (12, 13):
        library = folder / f"libnvrtc.so.{major}"
        subprocess.run(["cc", "-shared", "-fPIC", f"-DMAJOR={major}", "-o", library, source], check=True)
    done = child(
        """
        import importlib.util
        real = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *more: None if name == "nvidia" else real(name, *more)
        from halstream._kernel import _nvrtc
        assert [_nvrtc.version(driver)[0] for driver in (0, 13, 12, 14, 11)] == [13, 13, 12, 13, 13]
        """,
        env={"CUDA_PATH": str(tmp_path / "toolkit"), "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
