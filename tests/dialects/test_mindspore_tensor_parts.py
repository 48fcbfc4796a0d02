"""mindspore: parts and shapes of tensors, creation on each target, parameters, settings."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.mindspore as ms
import numpy as np
import pytest
from halstream.mindspore import Tensor, _settings, hal, ops, runtime
from mindspore_help import OnTarget, ascend, on_target

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]

__all__ = ["ascend", "on_target"]

Hold = Callable[[Any], Any]


def six() -> Tensor:
    return Tensor(np.arange(6).reshape(2, 3).astype(np.float32))


INDICES = [
    0, -1, (0, 1), slice(0, 1), slice(None, None, 2), (slice(None), 1), None, (0, ...), (slice(None), None),
    (slice(None, None, -1), slice(None)),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_are_those_of_numpy(index: Any) -> None:
    host = np.arange(6).reshape(2, 3).astype(np.float32)
    for x in (six(), six() + 0):
        part = x[index]
        assert isinstance(part, Tensor)
        assert part.shape == host[index].shape
        assert np.array_equal(part.asnumpy(), host[index])
        assert np.array_equal((part + 1).asnumpy(), host[index] + 1)
        x[index] = 7
        expected = host.copy()
        expected[index] = 7
        assert np.array_equal(x.asnumpy(), expected)


def test_parts_by_index_are_views() -> None:
    x = six()
    row, column = x[0], x[:, 1]
    row[1] = 9
    assert x.tolist() == [[0, 9, 2], [3, 4, 5]]
    x[1, 1] = 8
    assert column.tolist() == [9, 8]
    x.T[2] = [6, 7]
    assert x.tolist() == [[0, 9, 6], [3, 8, 7]]
    x[0:1] += 1
    assert x.tolist() == [[1, 10, 7], [3, 8, 7]]
    assert x[...] is x


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (5, "index 5 is out of bounds for dimension with size 2"),
        ((0, 1, 2), "too many indices for tensor of dimension2"),
    ],
)
def test_wrong_indices(index: Any, text: str) -> None:
    with pytest.raises(IndexError, match=text):
        six()[index]
    with pytest.raises(IndexError):
        six()[index] = 1
    with pytest.raises(ValueError, match="does not fit"):
        six()[0] = [1, 2]
    with pytest.raises(IndexError, match="Unsupported"):
        six()[0] = "a"


@pytest.mark.parametrize("index", [1.0, "a", True, [0, 1], (1, [0, 2]), np.array([0])], ids=str)
def test_other_indices_than_those_of_views_are_refused(index: Any) -> None:
    for use in (lambda: six()[index], lambda: six().__setitem__(index, 1)):
        with pytest.raises(hs.NotSupportedError, match="a part is selected by ints, slices, None"):
            use()


def test_a_write_to_a_part_waits_for_its_stream(hold: Hold) -> None:
    s, x = hal.Stream(), six()
    view = x[1]
    gate = hold(s)
    with hal.StreamCtx(s):
        x[1, 0] = 9
    assert s.query() is False
    gate.open()
    assert view.tolist() == [9, 4, 5], "reading waits for the stream that wrote the memory last"


def test_iteration_and_number_protocols() -> None:
    x = six()
    assert [row.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]
    assert [float(v) for v in x[0]] == [0, 1, 2]
    assert (3.0 in x, 7 in x) == (True, False)
    assert (sum(x[0]).item(), max(x[0]).item()) == (3, 2)
    for wrong in (lambda: list(Tensor(1)), lambda: len(Tensor(1))):
        with pytest.raises(TypeError, match="0-"):
            wrong()
    with pytest.raises(ValueError, match="Only one element"):
        int(x)
    with pytest.raises(ValueError, match="got 6"):
        x.item()


def test_comparisons_and_division() -> None:
    x, i = six(), six().astype(ms.int32)
    assert (x < 2).tolist() == [[True, True, False], [False, False, False]]
    assert (x >= 2.5).tolist() == [[False, False, False], [True, True, True]]
    assert (i < 2).tolist() == [[True, True, False], [False, False, False]]
    assert (i // 2).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert (i % 2).tolist() == [[0, 1, 0], [1, 0, 1]]
    assert str((i // 2.5).dtype) == "Float32"
    assert (i & 1).tolist() == [[0, 1, 0], [1, 0, 1]]
    assert (~Tensor([True, False])).tolist() == [False, True]
    for wrong in (
        lambda: x < None,
        lambda: x * (1, 2, 3),
        lambda: x - [1, 2, 3],
        lambda: x + "a",
        lambda: x & 1,
        lambda: x // None,
    ):
        with pytest.raises(TypeError):
            wrong()
    flag = Tensor([True, False])
    assert (flag - flag).tolist() == [False, False]
    with pytest.raises(TypeError, match="FloorMod"):
        flag % flag
    assert (x == None, x != None) == (False, True)  # noqa: E711


def test_sums() -> None:
    x, i = six(), six().astype(ms.int32)
    assert (x.sum().item(), str(i.sum().dtype), x.sum(0).tolist()) == (15, "Int64", [3, 5, 7])
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)
    with pytest.raises(ValueError):
        x.sum(5)
    with pytest.raises(TypeError, match="sum"):
        x.sum("a")


def test_copies_are_tensors_of_their_own() -> None:
    x = six()
    for made in (
        x.copy(), x.to(ms.float32), x.to("CPU"), x.to(), x.move_to("CPU"), x.astype(ms.float32),
        copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), Tensor(x), Tensor(x[:]),
    ):  # fmt: skip
        assert made is not x
        made[0, 0] = 5
        assert (made[0, 0].item(), x[0, 0].item()) == (5, 0)
    assert x.to(ms.int32).dtype is ms.int32
    assert x.to("CPU", ms.float16).dtype is ms.float16
    assert x.to(Tensor(1)).dtype is ms.int64
    with pytest.raises(ValueError, match="enum"):
        x.to("CPU:0")
    with pytest.raises(TypeError, match="to\\(int\\)"):
        x.to(1)


def test_move_to_waits_only_with_blocking(hold: Hold, on_target: OnTarget) -> None:
    on_target("CPU")
    s, x = hal.Stream(), six()
    gate = hold(s)
    with hal.StreamCtx(s):
        moved = x.move_to("CPU", blocking=False)
    assert s.query() is False
    gate.open()
    assert moved.tolist() == x.tolist()
    for wrong in ("cpu", 1, None):
        with pytest.raises(ValueError, match="must be one of"):
            x.move_to(wrong)
    with pytest.raises(RuntimeError, match="same with device target"):
        x.move_to("GPU")


@pytest.mark.parametrize("make", [lambda: ops.ones((4,)), lambda: ops.zeros((4,)) + 1])
def test_created_tensors_need_no_event_on_a_cpu(make: Callable[[], Tensor], hold: Hold, on_target: OnTarget) -> None:
    on_target("CPU")
    gate, s = hold(hal.default_stream()), hal.Stream()
    a = ops.ones((4,))
    with hal.StreamCtx(s):
        b = a + 1
        s.synchronize()
        assert b.tolist() == [2, 2, 2, 2]
    gate.open()
    assert make().tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("name", ["GPU", "Ascend"])
def test_created_tensors_are_work_of_the_current_stream_elsewhere(name: str, hold: Hold, on_target: OnTarget) -> None:
    on_target(name)
    s = hal.Stream()
    gate = hold(s)
    with hal.StreamCtx(s):
        made = [ops.ones(3), ops.zeros((2, 2))]
    assert s.query() is False
    gate.open()
    s.synchronize()
    assert [x.tolist() for x in made] == [[1, 1, 1], [[0, 0], [0, 0]]]


def test_what_a_shape_may_be() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 0, but got -1"):
        ops.ones(-1)
    for wrong in ("a", 2.0, None):
        with pytest.raises(TypeError):
            ops.zeros(wrong)
    with pytest.raises(TypeError, match="mindspore dtype"):
        ops.ones((2,), "x")
    assert Tensor(shape=(2, 2), dtype=ms.float32).shape == (2, 2)
    assert repr(Tensor([])) == "Tensor(shape=[0], dtype=Float32, value= )"
    assert repr(Tensor([1.0], ms.float16)) == "Tensor(shape=[1], dtype=Float16, value= [ 1.0000e+00])"
    assert Tensor([Tensor(1.0), 2]).tolist() == [1, 2]


def test_settings_of_the_runtime() -> None:
    _settings.forget()
    for name, call in (
        ("dispatch_threads_num", lambda: runtime.dispatch_threads_num(2)),
        ("set_cpu_affinity", lambda: runtime.set_cpu_affinity(False)),
        ("kernel_launch_group", lambda: runtime.set_kernel_launch_group(2, 8)),
    ):
        assert call() is None
        with pytest.raises(RuntimeError, match=name):
            call()
    _settings.forget()
    for wrong in (
        lambda: runtime.dispatch_threads_num("a"),
        lambda: runtime.dispatch_threads_num(True),
        lambda: runtime.set_kernel_launch_group("a"),
        lambda: runtime.set_kernel_launch_capture(1),
    ):
        with pytest.raises(TypeError):
            wrong()
    for wrong in (lambda: runtime.dispatch_threads_num(0), lambda: runtime.set_kernel_launch_group(3, 8)):
        with pytest.raises(ValueError):
            wrong()
    for absent in (
        lambda: runtime.PluggableAllocator("a.so", "f", "g"),
        lambda: runtime.MemPool(None),
        lambda: runtime.use_mem_pool(None),
        lambda: runtime.set_kernel_launch_capture(True),
    ):
        with pytest.raises(hs.NotSupportedError, match="not built yet"):
            absent()
