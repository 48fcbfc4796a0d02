"""torch.cuda.make_graphed_callables for functions of arrays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import halstream as hs
import numpy as np
import pytest
from halstream.torch import cuda

LIMIT = 10.0

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def array(value: float) -> Any:
    return hs.asarray(np.full(16, value, "f4"))


def value(of: Any) -> float:
    return float(of.numpy(cuda.current_stream())[0])


def copied(calls: list[Any]) -> Any:
    """Return a function that copies its argument into memory of its own, and notes its calls."""

    def function(x: Any) -> Any:
        stream = cuda.current_stream()
        calls.append((stream, cuda.is_current_stream_capturing()))
        out = hs.empty(16, "f4", stream=stream)
        out.copy_from(x, stream)
        return out

    return function


def test_J5_a_graphed_function_replays_with_the_arguments_of_the_call() -> None:
    calls: list[Any] = []
    sample = array(1)
    graphed = cuda.make_graphed_callables(copied(calls), (sample,))
    # Three times to warm up and once in the capture, on one stream of its own.
    assert [capturing for _, capturing in calls] == [False, False, False, True]
    assert len({stream for stream, _ in calls}) == 1
    assert calls[0][0] != cuda.current_stream()
    with cuda.stream(cuda.Stream()):
        first = graphed(array(5))
        assert value(first) == 5
        assert graphed(array(6)) is first and value(first) == 6
        sample.fill(7, cuda.current_stream())
        assert value(graphed(sample)) == 7  # nothing is copied
    assert len(calls) == 4


def test_J5_several_functions_and_the_number_of_warm_ups() -> None:
    one: list[Any] = []
    two: list[Any] = []
    made = cuda.make_graphed_callables(
        (copied(one), copied(two)), ((array(1),), (array(2),)), num_warmup_iters=1, pool=cuda.graph_pool_handle()
    )
    assert isinstance(made, tuple) and len(one) == len(two) == 2
    assert [value(f(array(n))) for f, n in zip(made, (3, 4), strict=True)] == [3, 4]
    assert one[0][0] == two[0][0]


class Pair(NamedTuple):
    left: Any
    right: Any


def test_J5_arguments_and_results_in_tuples_lists_and_dicts() -> None:
    def swapped(pair: Any, more: Any) -> Any:
        stream = cuda.current_stream()
        left, right, other = (hs.empty(16, "f4", stream=stream) for _ in range(3))
        left.copy_from(pair[1], stream)
        right.copy_from(pair[0], stream)
        other.copy_from(more["x"][0], stream)
        return Pair(left, right), {"other": [other]}

    graphed = cuda.make_graphed_callables(swapped, ((array(1), array(2)), {"x": [array(3)]}))
    pair, more = graphed((array(4), array(5)), {"x": [array(6)]})
    assert isinstance(pair, Pair)
    assert [value(one) for one in (*pair, more["other"][0])] == [5, 4, 6]
    more.clear()  # the program's own dict
    assert graphed((array(7), array(8)), {"x": [array(9)]})[1].keys() == {"other"}


def test_J5_the_captures_use_the_pool_that_is_given() -> None:
    pool = cuda.MemPool()
    graphed = cuda.make_graphed_callables((copied([]), copied([])), ((array(1),), (array(1),)), pool=pool)
    assert pool.use_count() == 3
    del graphed
    assert pool.use_count() == 1


def test_J5_what_is_refused() -> None:
    with pytest.raises(
        AssertionError, match=r"^In the beta API, sample_args for each callable must contain only Tensors"
    ):
        cuda.make_graphed_callables(copied([]), (1,))
    with pytest.raises(TypeError, match="returns arrays of halstream, not int"):
        cuda.make_graphed_callables(lambda x: cuda.current_stream().call(int) or 3, (array(1),))
    with pytest.raises(NotImplementedError, match="annotations"):
        cuda.make_graphed_callables(copied([]), (array(1),), enable_annotations=True)
    with ThreadPoolExecutor(1) as other, pytest.raises(RuntimeError, match=r"^Unknown capture error mode"):
        # As in torch, the stream of the capture stays current: on another thread, which ends.
        other.submit(cuda.make_graphed_callables, copied([]), (array(1),), capture_error_mode="x").result(LIMIT)
    graphed = cuda.make_graphed_callables(copied([]), (array(1),))
    with pytest.raises(TypeError, match="captured with 1 arrays, and is called with 2"):
        graphed(array(1), array(2))
    with pytest.raises(TypeError, match="takes arrays of halstream, not int"):
        graphed(1)
