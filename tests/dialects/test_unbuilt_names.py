"""No name of the mirrored packages ends in a bare AttributeError: it is built, or says that it is not."""

from __future__ import annotations

import copy
import importlib
from types import ModuleType
from typing import Any

import halstream as hs
import pytest
from halstream._dialects._unbuilt import is_unbuilt
from halstream.cupy.cuda._missing import names as cupy_names
from halstream.torch._missing import names as torch_names

KNOWN = {**cupy_names.all(), **torch_names.all()}


def holder(module: str) -> Any:
    """Return what the names of a module of the package are asked of here."""
    if module == "cupy.ndarray":
        return importlib.import_module("halstream.cupy").ndarray((3,))
    try:
        return importlib.import_module(f"halstream.{module}")
    except ImportError:  # a module that is not built is an attribute only
        parent, name = module.rsplit(".", 1)
        return getattr(holder(parent), name)


def use(found: Any) -> None:
    """Use what stands for a name as a program would."""
    if isinstance(found, ModuleType):
        found.anything  # noqa: B018
    else:
        found(1, a=2)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("module", KNOWN)
def test_every_name_is_built_or_says_that_it_is_not(module: str) -> None:
    where, names = holder(module), KNOWN[module]
    assert names
    for name in names:
        path = f"{module}.{name}"
        try:
            found = getattr(where, name)
        except hs.NotSupportedError as exc:
            assert isinstance(exc, AttributeError) and f"{path} is not built yet" in str(exc)
            continue
        if is_unbuilt(found):
            with pytest.raises(hs.NotSupportedError, match=f"{path}[.a-z]* is not built yet"):
                use(found)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("module", ["cupy", "cupy.cuda", "cupy.cuda.runtime", "cupyx", "torch", "torch.cuda"])
def test_names_that_the_package_lacks_are_plain_errors(module: str) -> None:
    where = holder(module)
    with pytest.raises(AttributeError, match="has no attribute 'nobody_has_this'") as info:
        where.nobody_has_this  # noqa: B018
    assert not isinstance(info.value, hs.HalError)
    assert getattr(where, "nobody_has_this", 7) == 7


def test_a_program_may_import_what_it_does_not_use() -> None:
    from halstream.cupy import ElementwiseKernel, RawKernel, linalg
    from halstream.torch import Tensor
    from halstream.torch.cuda import CUDAGraph

    assert not isinstance(3, (RawKernel, Tensor, CUDAGraph))
    assert RawKernel is RawKernel and repr(RawKernel) == "<class 'halstream.cupy.RawKernel'>"
    assert RawKernel.__doc__ == "cupy.RawKernel: not built yet."
    assert issubclass(type("Mine", (ElementwiseKernel,), {}), ElementwiseKernel)
    assert copy.copy(linalg.__name__) == "halstream.cupy.linalg"
    with pytest.raises(ImportError):
        exec("from halstream.cupy import r_")


def test_what_is_asked_of_a_class_that_is_not_built() -> None:
    from halstream.torch.cuda import CUDAGraph

    with pytest.raises(NotImplementedError, match=r"^torch\.cuda\.CUDAGraph is not built yet$"):
        CUDAGraph()
    assert not hasattr(CUDAGraph, "replay")
    with pytest.raises(AttributeError, match=r"^torch\.cuda\.CUDAGraph\.replay is not built yet$"):
        CUDAGraph.replay  # noqa: B018


def test_values_are_absent_to_feature_tests() -> None:
    import halstream.cupy as cp
    import halstream.torch as torch

    assert not hasattr(cp, "r_") and getattr(torch, "float8_e5m2", None) is None
    with pytest.raises(hs.NotSupportedError, match=r"torch\.float32 is not built yet"):
        torch.float32  # noqa: B018


def test_the_error_of_a_kernel_names_it() -> None:
    from halstream.cupy import RawKernel, cuda

    with pytest.raises(cuda.runtime.CUDARuntimeError) as info:
        RawKernel("code", "name")
    assert info.value.status == 801
    assert str(info.value) == ("cudaErrorNotSupported: operation not supported (cupy.RawKernel is not built yet)")
