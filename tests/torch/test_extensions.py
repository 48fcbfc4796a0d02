"""Extensions with CUDA sources, and those that are not built: modules of functions that the program registers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import halstream as hs
import halstream.torch as ht
import pytest


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


def test_an_extension_that_is_no_module_is_refused(torch: Any) -> None:
    from torch.utils import cpp_extension

    with pytest.raises(
        NotImplementedError, match=r"'halstream_tests_ops', which is no Python module.*torch\.library\.define"
    ):
        cpp_extension.load("halstream_tests_ops", ["ops.cu"], is_python_module=False)


def test_a_registered_function_runs_in_the_order_of_its_stream(torch: Any) -> None:
    from torch.utils import cpp_extension

    made = cpp_extension.load("halstream_tests_order", ["order.cu"])
    ht.register_kernel("halstream_tests_order.double_", lambda x: x.mul_(2))
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
