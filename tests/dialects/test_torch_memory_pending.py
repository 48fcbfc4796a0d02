"""torch.cuda.memory: figures of memory that pending functions use."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend"), pytest.mark.needs("host")]

MIB = 1 << 20


@pytest.mark.parametrize("ordered", [False, True])
def test_an_array_that_a_pending_function_gets_counts_until_it_is_dropped(
    hold: Callable[[Any], Any], ordered: bool
) -> None:
    gc.collect()
    cuda.init()
    cuda.synchronize()
    before = cuda.memory_allocated(0)
    stream = cuda.Stream(0)
    array = hs.empty(MIB, np.uint8, 0, stream if ordered else None)
    sums: list[int] = []
    gate = hold(stream)
    array.fill(3, stream)
    stream.call(lambda x: sums.append(int(x.sum())), array)
    assert cuda.memory_allocated(0) - before == MIB
    del array
    assert cuda.memory_allocated(0) == before
    others = [hs.zeros(MIB, np.uint8, stream=stream) for _ in range(3)]
    gate.open()
    stream.synchronize()
    assert sums == [3 * MIB]
    del others
    assert cuda.memory_allocated(0) == before
