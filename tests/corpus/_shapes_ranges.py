"""Strided ranges, columns and pieces of one block."""

from __future__ import annotations

import numpy as np
from halstream.cupy import cuda as cupy_cuda
from halstream.cupy.cuda import runtime
from halstream.torch import cuda

from ._host import Host, N, pinned_numbers, read
from ._shapes_help import Shapes, streams

SHAPES = Shapes("ranges that overlap")
D2D = 3


@SHAPES.add("core")
def even_elements_twice(ordered: bool) -> None:
    """Two functions declare the even elements; one of them was to take the odd ones."""
    host = Host()
    array = host.numbers(0)
    view = np.asarray(array)
    even, other = view[::2], view[1::2] if ordered else view[::2]
    with streams() as (one, two):
        one.call(even.fill, 1, writes=[even])
        host.step()
        two.call(other.fill, 2, writes=[other])
        two.synchronize()
        one.synchronize()
        assert int(view.sum()) == (3 if ordered else 2) * N // 2


@SHAPES.add("torch")
def halves_with_a_common_element(ordered: bool) -> None:
    """The second half begins one element early."""
    host = Host()
    array = host.numbers(0)
    begin = N // 2 - (0 if ordered else 1)
    with streams(cuda.Stream) as (one, two):
        array[: N // 2].fill(1, one)
        host.step()
        array[begin:].fill(2, two)
        one.synchronize()
        two.synchronize()
        assert int(array.numpy(one)[N // 2]) == 2
        assert int(array.numpy(one)[N // 2 - 1]) == (1 if ordered else 2)


@SHAPES.add("cupy")
def columns_of_a_matrix(ordered: bool) -> None:
    """Copies of rows with a pitch: the second one is a column too wide."""
    host = Host()
    matrix, left, right = host.numbers(0), host.numbers(1), host.numbers(2)
    wide = 16 if ordered else 20
    with streams(lambda: cupy_cuda.Stream(non_blocking=True)) as (one, two):
        runtime.memcpy2DAsync(matrix.ptr, 32, left.ptr, 16, 16, 8, D2D, one.ptr)
        host.step()
        runtime.memcpy2DAsync(matrix.ptr + 32 - wide, 32, right.ptr, wide, wide, 8, D2D, two.ptr)
        one.synchronize()
        two.synchronize()
        assert int(matrix.numpy(one)[3]) == (1 if ordered else 2)


@SHAPES.add("core")
def reversed_view(ordered: bool) -> None:
    """A view with a negative step ends where the next copy begins, or one element behind."""
    host = Host()
    array, source, out = host.numbers(0), pinned_numbers(4), pinned_numbers(0)
    last = 16 if ordered else 15
    tail = np.asarray(array)[31 : last - 1 : -1]
    with streams() as (one, two):
        one.call(tail.fill, 3, writes=[tail])
        host.step()
        array[:16].copy_from(source[:16], two)
        array[:16].copy_to(out[:16], two)
        two.synchronize()
        one.synchronize()
        assert read(out)[15] == 4
        array.copy_to(out, two)
        two.synchronize()
        assert read(out)[15] == 4
