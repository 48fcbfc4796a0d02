"""Every public name of a mirrored package exists, or says that it is not built yet."""

from __future__ import annotations

import importlib
import importlib.resources
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream._dialects._not_built import names

DIALECTS = sorted(
    d.name for d in importlib.resources.files("halstream").iterdir() if d.is_dir() and d.joinpath("names.txt").is_file()
)


def _cell() -> Any:
    from halstream.mindspore import nn

    return nn.Cell()


def _parameter() -> Any:
    from halstream.mindspore import Parameter, Tensor

    return Parameter(Tensor(1))


def _mindspore_tensor() -> Any:
    from halstream.mindspore import Tensor

    return Tensor(1)


def _paddle_tensor() -> Any:
    from halstream import paddle

    return paddle.ones([1])


# How an object of each listed class is made.
MAKERS: dict[str, Callable[[], Any]] = {
    "mindspore.Tensor": _mindspore_tensor,
    "mindspore.Parameter": _parameter,
    "mindspore.nn.Cell": _cell,
    "paddle.Tensor": _paddle_tensor,
}


def owners(dialect: str) -> Iterator[tuple[str, Any]]:
    for where in names(dialect):
        if where.rpartition(".")[2][0].isupper():
            yield where, MAKERS[where]()
        else:
            yield where, importlib.import_module(f"halstream.{where}")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_name_exists_or_says_that_it_is_not_built(dialect: str) -> None:
    wrong, built, absent = [], 0, 0
    for where, owner in owners(dialect):
        for name in sorted(names(dialect)[where]):
            try:
                getattr(owner, name)
                built += 1
            except hs.NotSupportedError as exc:
                absent += 1
                if f"{name} is not built yet" not in str(exc) and "not supported" not in str(exc):
                    wrong.append(f"{where}.{name}: {exc}")
            except AttributeError as exc:
                wrong.append(f"{where}.{name}: {exc!r}")
    assert not wrong, "\n".join(wrong)
    assert built > 50
    assert absent > 50


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unbuilt_name_is_honest_to_every_question(dialect: str) -> None:
    module = importlib.import_module(f"halstream.{dialect}")
    name = next(n for n in sorted(names(dialect)[dialect]) if not hasattr(module, n))
    assert getattr(module, name, None) is None
    with pytest.raises(AttributeError, match=f"{dialect}.{name} is not built yet"):
        getattr(module, name)
    with pytest.raises(ImportError, match=f"{dialect}.{name} is not built yet"):
        exec(f"from halstream.{dialect} import {name}")
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        module.no_such_name  # noqa: B018
    with pytest.raises(ImportError, match="no_such_name"):
        exec(f"from halstream.{dialect} import no_such_name")
