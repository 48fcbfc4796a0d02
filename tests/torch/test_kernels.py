"""Kernels of others: refused by name, or run by a CPU function that the program gives."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import halstream.torch as ht
import pytest


@pytest.fixture(scope="module")
def library(redirected: Any) -> Any:
    """Define three operators without a kernel for any device."""
    made = redirected.library.Library("halstream_tests", "DEF")
    made.define("scale(Tensor x, float by) -> Tensor")
    made.define("scale_(Tensor(a!) x, float by) -> Tensor(a!)")
    made.define("halves(Tensor x) -> Tensor[]")
    return made


def test_a_cpu_function_runs_an_operator(torch: Any, library: Any) -> None:
    ht.register_kernel("halstream_tests::scale", lambda x, by: x * by)
    ht.register_kernel("halstream_tests::scale_", lambda x, by: x.mul_(by))
    ht.register_kernel("halstream_tests::halves", lambda x: [x[:1].clone(), x[1:].clone()])
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        x = torch.tensor([1.0, 2.0], device="cuda")
        y = torch.ops.halstream_tests.scale(x, 3)
        z = torch.ops.halstream_tests.scale_(x, 2.0)
        halves = torch.ops.halstream_tests.halves(x)
    s.synchronize()
    assert y.is_cuda and y.tolist() == [3, 6] and z.tolist() == x.tolist() == [2, 4]
    assert [half.tolist() for half in halves] == [[2], [4]] and halves[0].is_cuda


def test_an_operator_without_one_names_itself(torch: Any) -> None:
    made = torch.library.Library("halstream_tests_bare", "DEF")
    made.define("alone(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="halstream_tests_bare::alone"):
        torch.ops.halstream_tests_bare.alone(torch.ones(2, device="cuda"))


def test_wrong_arguments_are_refused(torch: Any) -> None:
    with pytest.raises(ht.RedirectError, match="no library defines the operator 'nobody::knows'"):
        ht.register_kernel("nobody::knows", print)
    with pytest.raises(TypeError, match="takes a function"):
        ht.register_kernel("halstream_tests::scale", 3)  # type: ignore[arg-type]


def test_F24_an_operator_of_a_compiled_library_runs_by_its_cpu_kernel(torch: Any) -> None:
    from halstream.torch._redirect.kernels import serve_libraries
    from halstream.torch._redirect.patches import Patches

    made = torch.library.Library("halstream_tests_compiled", "DEF")

    def load(path: str) -> None:
        for name in ("keep", "cuda_only"):
            made.define(f"{name}(Tensor x) -> Tensor")
            made.impl(name, _without_driver, "CUDA")
        made.impl("keep", lambda x: x.nonzero(), "CPU")

    patches = Patches()
    loading = SimpleNamespace(_C=torch._C, ops=SimpleNamespace(load_library=load))
    serve_libraries(loading, sys.modules["halstream_torch_device"], patches)
    loading.ops.load_library("a library")
    patches.undo()
    assert loading.ops.load_library is load
    x = torch.tensor([0.0, 3.0, 4.0], device="cuda")
    assert torch.ops.halstream_tests_compiled.keep(x).tolist() == [[1], [2]]
    with pytest.raises(RuntimeError, match="no driver"):
        torch.ops.halstream_tests_compiled.cuda_only(x)
    assert torch.ops.load_library.__wrapped__ is not None  # it is in place for torch itself


def _without_driver(x: Any) -> Any:
    raise RuntimeError("no driver of CUDA")
