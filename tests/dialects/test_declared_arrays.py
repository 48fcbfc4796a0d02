"""Arrays of the dialects among the arguments of functions on streams, and among what functions declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import cupy, mindspore, paddle

pytestmark = pytest.mark.usefixtures("backend")

MAKES = pytest.mark.parametrize(
    "make",
    [
        lambda: cupy.zeros(4, np.float32),
        lambda: paddle.zeros([4]) + 1,
        lambda: mindspore.Tensor(np.zeros(4, np.float32)) + 1,
    ],
    ids=["cupy", "paddle", "mindspore"],
)


def take(*_: object) -> None:
    """Do nothing: what counts is what was declared."""


def found(x: Any, second: Callable[[hs.Stream, Any], None]) -> list[Any]:
    """Return what is found where a function that writes an array and `second` have no order."""
    hs.synchronize()
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    with hs.sanitize(on="collect") as report:
        a.call(take, writes=[x])
        second(b, x)
        hs.synchronize()
    return [(one.category, one.nbytes) for one in report.all]


@MAKES
def test_M11_an_array_that_a_function_declares_counts_with_its_bytes(make: Callable[[], Any]) -> None:
    assert found(make(), lambda s, x: s.call(take, reads=[x])) == [("race", 16)]
    assert found(make(), lambda s, x: s.call(take, writes=[x])) == [("race", 16)]
    assert found(make(), lambda s, x: s.call(hs.accesses(take, reads=[x]))) == [("race", 16)]


@MAKES
def test_M11_an_array_among_the_arguments_of_a_function_counts_as_read(make: Callable[[], Any]) -> None:
    assert found(make(), lambda s, x: s.call(take, x)) == [("race", 16)]
    assert found(make(), lambda s, x: s.call_many([(take, x)])) == [("race", 16)]
    assert found(make(), lambda s, x: s.call(take, x, reads=())) == []


def test_M11_a_view_of_a_tensor_counts_with_its_elements_only() -> None:
    x = paddle.zeros([4]) + 1
    hs.synchronize()
    a, b, c = (hs.Stream(non_blocking=True) for _ in range(3))
    with hs.sanitize(on="collect") as report:
        a.call(take, writes=[x[::2]])
        b.call(take, writes=[x[1::2]])
        c.call(take, reads=[x[1:2]])
        hs.synchronize()
    (one,) = report.races
    assert one.nbytes == 4 and one.start == x._block().ptr + 4
