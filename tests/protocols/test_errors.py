"""All error classes of the core and the dialects: they can be pickled, and keep what they say."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from typing import Any

import halstream as hs
import pytest
from halstream import _errors

#: Modules of the package that hold error classes of its public surface.
PACKAGES = ("torch", "paddle", "mindspore", "cupy", "cupyx", "cuda", "acl", "_memory", "_core", "_kernel")
#: Raised and caught inside the package only.
INTERNAL = {"Wrong"}


def modules() -> Iterator[Any]:
    for name in PACKAGES:
        package = importlib.import_module(f"halstream.{name}")
        yield package
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if found.name.startswith("halstream.torch._standins."):
                continue  # they need the real torch
            if found.name not in ("halstream.torch.cuda_on_host", "halstream.paddle.plugin"):  # they take over
                yield importlib.import_module(found.name)


def classes() -> dict[str, type[BaseException]]:
    found: dict[str, type[BaseException]] = {}
    for module in modules():
        for value in vars(module).values():
            if not (inspect.isclass(value) and issubclass(value, Exception)):
                continue
            if value.__module__.startswith("halstream") and value.__name__ not in INTERNAL:
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


CLASSES = classes()


def makers() -> dict[str, Any]:
    """Every dialect's exception for each kind of failure."""
    made = {}
    for name in ("torch._errors", "paddle._errors", "cupy.cuda._errors", "cuda.core._errors"):
        for kind, make in importlib.import_module(f"halstream.{name}").ERRORS.items():
            made[f"{name.partition('.')[0]} {kind}"] = make
    return made


MAKERS = makers()


def check(error: BaseException) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)


def test_the_list_of_classes_is_complete() -> None:
    names = {name.rpartition(".")[2] for name in CLASSES}
    assert {
        "AcceleratorError",
        "OutOfMemoryError",
        "EnforceNotMet",
        "CUDARuntimeError",
        "CUDADriverError",
        "CudaError",
        "CUDAError",
        "NVRTCError",
    } <= names


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES.keys())
def test_every_error_class_can_be_pickled(cls: Any) -> None:
    for args in (("what happened",), (2,), (16, 4, 8), ("what happened", "source", "name", ("option",)), ()):
        try:
            error = cls(*args)
            str(error)
        except Exception:
            continue
        break
    else:
        pytest.fail(f"no arguments are known that make a {cls}")
    check(error)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_every_dialects_exception_of_a_kind_can_be_pickled(make: Any) -> None:
    error = make("what happened", code=7, operation="record")
    assert isinstance(error, hs.HalError)
    check(error)


def test_the_log_of_a_compile_error_survives() -> None:
    error = _errors.CompileError("no", log="line 1")
    check(error)
    assert pickle.loads(pickle.dumps(error)).log == "line 1"


def test_a_process_pool_propagates_a_dialects_error(child: Any, tmp_path: Any) -> None:
    (tmp_path / "work.py").write_text("def fail():\n    from halstream.torch import cuda\n    cuda.Stream(99)\n")
    done = child(
        """
    import concurrent.futures
    import multiprocessing
    import sys
    sys.path.insert(0, ".")
    import work

    if __name__ == "__main__":
        from halstream import torch
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
            try:
                pool.submit(work.fail).result(30)
            except torch.AcceleratorError as exc:
                assert "invalid device ordinal" in str(exc), exc
                assert exc.kind == "invalid_device" and exc.code == 101
                print("done")
    """,
        timeout=60.0,
    )
    assert done.stdout == "done\n", done.stderr


def test_the_error_of_an_exhausted_pool_keeps_its_class() -> None:
    """Its class has the name of the public one, so it cannot be pickled by reference."""
    from halstream.cupy import cuda

    with pytest.raises(hs.OutOfMemoryError) as failed:
        cuda.alloc(1 << 50)
    check(failed.value)
