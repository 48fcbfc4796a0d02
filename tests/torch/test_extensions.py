"""Extensions with CUDA sources and without nvcc, and those that are not built: modules of registered functions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import halstream as hs
import halstream.torch as ht
import pytest
from halstream.torch._redirect import extensions, nvcc


@pytest.fixture
def without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no nvcc be found."""
    monkeypatch.setattr(extensions, "find_toolkit", lambda *args: None)


@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("inline", [False, True])
def test_an_extension_with_cuda_sources_has_the_registered_functions(torch: Any, tmp_path: Path, inline: bool) -> None:
    from torch.utils import cpp_extension

    name = f"halstream_tests_{'inline' if inline else 'file'}"
    if inline:
        made = cpp_extension.load_inline(name, "torch::Tensor twice(torch::Tensor x);", "// CUDA", functions=["twice"])
    else:
        made = cpp_extension.load(name=name, sources=[str(tmp_path / "twice.cu")])
    x = torch.ones(3, device="cuda")
    with pytest.raises(NotImplementedError, match=rf"register_kernel\('{name}\.twice', function\)"):
        made.twice(x)
    ht.register_kernel(f"{name}.twice", lambda x, times=2: x.mul_(times))
    assert made.twice(x, times=4) is x and x.tolist() == [4, 4, 4]
    assert made.twice.__name__ == "twice" and not hasattr(made, "__path__")


def test_an_extension_that_is_not_installed_is_imported_once_it_has_functions(torch: Any) -> None:
    with pytest.raises(ModuleNotFoundError):
        import halstream_tests_not_built  # type: ignore[import-not-found]  # noqa: F401
    ht.register_kernel("halstream_tests_not_built.add", lambda x, y: x + y)
    import halstream_tests_not_built as built

    x = torch.ones(2, device="cuda")
    assert built.add(x, x).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match=r"register_kernel\('halstream_tests_not_built\.sub', function\)"):
        built.sub(x, x)


@pytest.mark.usefixtures("without_nvcc")
def test_an_extension_that_is_no_module_is_refused(torch: Any) -> None:
    from torch.utils import cpp_extension

    with pytest.raises(
        NotImplementedError, match=r"'halstream_tests_ops', which is no Python module.*torch\.library\.define"
    ):
        cpp_extension.load("halstream_tests_ops", ["ops.cu"], is_python_module=False)


def test_a_registered_function_runs_in_the_order_of_its_stream(torch: Any) -> None:
    from torch.utils import cpp_extension

    ht.register_kernel("halstream_tests_order.double_", lambda x: x.mul_(2))
    made = cpp_extension.load("halstream_tests_order", ["order.cu"])  # it has a function: nothing is compiled
    x, side = torch.ones(64, device="cuda"), torch.cuda.Stream()
    for waits in (True, False):
        torch.cuda.synchronize()
        with hs.sanitize(on="collect") as report:
            x.fill_(1)
            if waits:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                made.double_(x)
            torch.cuda.synchronize()
        assert bool(report.races) is not waits, str(report)


def test_nvcc_is_that_of_torch_or_of_a_package(torch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package, toolkit = tmp_path / "packages" / "nvidia" / "cu13", tmp_path / "cuda"
    for home in (package, toolkit):
        (home / "bin").mkdir(parents=True)
        (home / "include").mkdir()
        (home / "bin" / "nvcc").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    found = nvcc.find_toolkit(torch, SimpleNamespace(CUDA_HOME=None))
    if torch.version.cuda is None:
        assert found is None
        return
    assert found is not None and found.home == package and found.includes[0] == package / "include"
    found = nvcc.find_toolkit(torch, SimpleNamespace(CUDA_HOME=str(toolkit)))
    assert found is not None and found.home == toolkit and not found.includes


def test_options_for_an_architecture_are_left_out() -> None:
    flags = ["-O3", "-arch", "sm_90", "-gencode=arch=compute_90,code=sm_90", "--gpu-code=sm_90", "-archive"]
    assert nvcc._without_architecture(flags) == ["-O3", "-archive"]
