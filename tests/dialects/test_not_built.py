"""Every public name of a mirrored package is built, or says by its name that it is not."""

from __future__ import annotations

import importlib
import importlib.resources
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import halstream as hs
import pytest
from halstream._dialects._not_built import is_not_built, names

DIALECTS = sorted(
    d.name for d in importlib.resources.files("halstream").iterdir() if d.is_dir() and d.joinpath("names.txt").is_file()
)
LISTED = {owner: kinds for dialect in DIALECTS for owner, kinds in names(dialect).items()}
MODULES = [owner for owner, kinds in LISTED.items() if "attributes" not in kinds.values()]
CLASSES = [owner for owner in LISTED if owner not in MODULES]


def module(name: str) -> Any:
    try:
        return importlib.import_module(f"halstream.{name}")
    except ModuleNotFoundError:  # a module that is not built is an attribute only
        parent, _, last = name.rpartition(".")
        return getattr(module(parent), last)


def _cupy_array() -> Any:
    return module("cupy").ndarray((3,))


def _cell() -> Any:
    return module("mindspore.nn").Cell()


def _mindspore_tensor() -> Any:
    return module("mindspore").Tensor(1)


def _paddle_tensor() -> Any:
    return module("paddle").ones([1])


# Classes of which objects answer for what is not built; how one is made.
MAKERS: dict[str, Callable[[], Any]] = {
    "cupy.ndarray": _cupy_array,
    "mindspore.Tensor": _mindspore_tensor,
    "mindspore.nn.Cell": _cell,
    "paddle.Tensor": _paddle_tensor,
}

SET_BY_CONSTRUCTORS = {"device_id", "ptr"}


def use(found: Any) -> None:
    """Use what stands for a name as a program would."""
    if isinstance(found, ModuleType):
        found.anything  # noqa: B018
    else:
        found(1, a=2)


def test_six_dialects_list_the_names_of_their_packages() -> None:
    assert DIALECTS == ["acl", "cuda", "cupy", "cupyx", "mindspore", "paddle", "torch"]
    kinds = {kind for listed in LISTED.values() for kind in listed.values()}
    assert kinds == {"classes", "functions", "modules", "values", "attributes"}
    for dialect in DIALECTS:
        assert LISTED[dialect]
        assert all(owner.partition(".")[0] == dialect for owner in names(dialect))
    assert all(LISTED.values())
    assert set(MAKERS) < set(CLASSES)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("owner", [*MODULES, *MAKERS])
def test_every_name_is_built_or_raises_not_built(owner: str) -> None:
    where = MAKERS[owner]() if owner in MAKERS else module(owner)
    wrong = []
    for name, kind in LISTED[owner].items():
        says = f"{owner}.{name} is not built yet"
        try:
            found = getattr(where, name)
        except hs.NotSupportedError as exc:
            if not ((isinstance(exc, AttributeError) and says in str(exc)) or "not supported" in str(exc)):
                wrong.append(f"{owner}.{name}: {exc!r}")
            elif isinstance(exc, AttributeError) and kind not in ("values", "attributes") and not is_not_built(where):
                wrong.append(f"{owner}.{name}: cannot be imported")
            continue
        except AttributeError as exc:
            wrong.append(f"{owner}.{name}: {exc!r}")
            continue
        if is_not_built(found):
            assert kind in ("classes", "functions", "modules")
            with pytest.raises(hs.NotSupportedError, match=rf"{owner}\.{name}[.a-z]* is not built yet"):
                use(found)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("owner", [owner for owner in CLASSES if owner not in MAKERS])
def test_every_attribute_of_the_classes_of_strict_mode_is_there(owner: str) -> None:
    where, _, name = owner.rpartition(".")
    cls = getattr(module(where), name)
    absent = [name for name in LISTED[owner] if not hasattr(cls, name) and name not in SET_BY_CONSTRUCTORS]
    assert not absent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_both_built_and_not_built(dialect: str) -> None:
    owner = "cuda.core" if dialect == "cuda" else dialect  # cuda is a folder of packages
    where = module(owner)
    functions = [name for name, kind in LISTED[owner].items() if kind in ("classes", "functions")]
    found = [is_not_built(getattr(where, name)) for name in functions]
    assert True in found
    assert False in found


INSIDE = ["acl.rt", "cuda.core", "cuda.core.graph", "cupy.cuda.runtime", "paddle.device", "mindspore.ops"]


@pytest.mark.parametrize("owner", [*INSIDE, *DIALECTS])
def test_names_that_the_package_lacks_are_plain_errors(owner: str) -> None:
    where = module(owner)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'") as info:
        where.no_such_name  # noqa: B018
    assert not isinstance(info.value, hs.HalError)
    assert getattr(where, "no_such_name", 7) == 7
    with pytest.raises(ImportError, match="no_such_name"):
        exec(f"from halstream.{owner} import no_such_name")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("owner", MAKERS)
def test_attributes_that_the_class_lacks_are_plain_errors(owner: str) -> None:
    made = MAKERS[owner]()
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'") as info:
        made.no_such_name  # noqa: B018
    assert not isinstance(info.value, hs.HalError)


def test_a_program_may_import_what_it_does_not_use() -> None:
    from halstream.acl import mdl
    from halstream.acl.rt import launch_kernel
    from halstream.cuda.core import Linker, utils
    from halstream.cuda.core.graph import GraphDefinition
    from halstream.cupy import flatiter, linalg, vectorize
    from halstream.mindspore import Model, ops
    from halstream.paddle import DataParallel, concat
    from halstream.torch import Tensor
    from halstream.torch.cuda import CUDAPluggableAllocator

    assert not isinstance(3, (vectorize, Tensor, CUDAPluggableAllocator, Model, DataParallel))
    assert vectorize is vectorize and repr(vectorize) == "<class 'halstream.cupy.vectorize'>"
    assert vectorize.__doc__ == "cupy.vectorize: not built yet."
    assert issubclass(type("Mine", (flatiter,), {}), flatiter)
    assert linalg.__name__ == "halstream.cupy.linalg"
    with pytest.raises(hs.NotSupportedError, match=r"(?m)^acl\.rt\.launch_kernel is not built yet$"):
        launch_kernel()
    with pytest.raises(hs.NotSupportedError, match=r"^acl\.mdl\.load_from_file is not built yet; "):
        mdl.load_from_file("a")
    with pytest.raises(hs.NotSupportedError, match=r"(?m)^mindspore\.ops\.Conv2D is not built yet$"):
        ops.Conv2D(1, 1)
    assert callable(concat)
    with pytest.raises(hs.NotSupportedError, match=r"(?m)^cuda\.core\.Linker is not built yet$"):
        Linker()
    with pytest.raises(AttributeError, match=r"(?m)^cuda\.core\.utils\.StridedMemoryView is not built yet$"):
        utils.StridedMemoryView  # noqa: B018
    assert not isinstance(3, GraphDefinition)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("use", "name", "advice"),
    [
        ("torch.tensor([1])", "torch.tensor is not built yet", "halstream run --torch"),
        ("torch.float32", "torch.float32 is not built yet", "halstream run --torch"),
        ("torch.cuda.CUDAGraph()", "torch.cuda.CUDAGraph is not built yet", "halstream run --torch"),
        ("torch.cuda.graphs.graph", "torch.cuda.graphs.graph is not built yet", "the real torch's"),
        ("torch.cuda.memory.MemPool()", "torch.cuda.memory.MemPool is not built yet", "pytest --stream-torch"),
        (
            "torch.accelerator.memory_stats()",
            "torch.accelerator.memory_stats is not built yet",
            "halstream run --torch",
        ),
        ("torch.cuda.no_such", "module 'halstream.torch.cuda' has no attribute 'no_such'", "halstream run --torch"),
        ("torch.nn.Linear", "torch.nn.Linear is not built yet", "halstream.torch.cuda_on_host"),
        ("paddle.concat([])", "paddle.concat is not built yet", "halstream run --paddle PROGRAM"),
        ("paddle.ones([1]).mean()", "paddle.Tensor.mean is not built yet", "import halstream.paddle.plugin"),
        ("mindspore.Parameter(1)", "mindspore.Parameter is not built yet", "a few operations on tensors"),
        ("paddle.nn", "module 'halstream.paddle' has no attribute 'nn'", "a few operations on tensors"),
        ("cupy.fft2([1])", "module 'halstream.cupy' has no attribute 'fft2'", "a few functions of arrays"),
        (
            "cupy.sum([1])",
            "cudaErrorNotSupported: operation not supported (cupy.sum is not built yet",
            "a few functions of arrays",
        ),
        ("cuda.bindings.driver", "cuda.bindings.driver is not built yet", "halstream run --cuda PROGRAM"),
        ("acl.dvpp", "module 'halstream.acl' has no attribute 'dvpp'", "no models, operators or media"),
    ],
)
def test_a_name_of_the_package_itself_says_what_the_dialect_is(use: str, name: str, advice: str) -> None:
    with pytest.raises((hs.HalError, AttributeError), match=rf"^{re.escape(name)}; .*{re.escape(advice)}"):
        eval(use, {dialect: module(dialect) for dialect in DIALECTS})


def test_attributes_of_a_class_that_is_not_built() -> None:
    from halstream.torch.cuda import CUDAPluggableAllocator

    with pytest.raises(NotImplementedError, match=r"^torch\.cuda\.CUDAPluggableAllocator is not built yet; "):
        CUDAPluggableAllocator()
    assert not hasattr(CUDAPluggableAllocator, "allocator")
    with pytest.raises(AttributeError, match=r"^torch\.cuda\.CUDAPluggableAllocator\.allocator is not built yet; "):
        CUDAPluggableAllocator.allocator  # noqa: B018


@pytest.mark.parametrize("name", ["cupy.r_", "torch.float8_e5m2", "paddle.float8_e5m2", "mindspore.float8_e5m2"])
def test_values_are_absent_to_feature_tests(name: str) -> None:
    dialect, _, last = name.partition(".")
    where = module(dialect)
    assert LISTED[dialect][last] == "values"
    assert not hasattr(where, last)
    assert getattr(where, last, None) is None
    with pytest.raises(hs.NotSupportedError, match=rf"{name} is not built yet"):
        getattr(where, last)
    with pytest.raises(ImportError, match=last):
        exec(f"from halstream.{dialect} import {last}")


def test_a_built_module_is_imported_at_its_first_use() -> None:
    from halstream.mindspore import device_context

    built = device_context.cpu
    del device_context.cpu
    assert device_context.cpu is built


def test_the_error_of_a_class_names_it() -> None:
    from halstream.cupy import cuda, vectorize

    with pytest.raises(cuda.runtime.CUDARuntimeError) as info:
        vectorize(print)
    assert info.value.status == 801
    assert str(info.value) == (
        "cudaErrorNotSupported: operation not supported (cupy.vectorize is not built yet; halstream.cupy has cupy's "
        "streams, events, devices and memory, kernels, and a few functions of arrays)"
    )
