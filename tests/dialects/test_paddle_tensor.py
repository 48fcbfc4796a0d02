"""paddle: the tensors of stream programs, random numbers, and small functions of paddle.device."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import paddle
from halstream.paddle._random import generator
from halstream.testing import Trace

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

Hold = Callable[[Any], Any]


def six() -> Any:
    return paddle.to_tensor([[0.0, 1, 2], [3, 4, 5]])


def side() -> Any:
    return paddle.device.Stream()


@pytest.fixture
def on_cpu(backend: str) -> Any:
    before = paddle.get_device()
    paddle.set_device("cpu")
    yield
    paddle.set_device(before)


def test_operations_run_on_the_current_stream(hold: Hold) -> None:
    s, x = side(), six()
    gate = hold(s)
    with paddle.device.stream_guard(s), Trace() as trace:
        y = paddle.matmul(x, x.T) + 1
        made = [paddle.ones([2]), paddle.zeros([2, 2]), paddle.randn([3]), y.clone(), y.T.clone()]
        y.add_(paddle.ones([2, 2]))
    assert len([o for o in trace.operations if o.kind == "call"]) == 9
    assert s.query() is False
    assert paddle.device.current_stream().query() is True
    gate.open()
    s.synchronize()
    assert y.tolist() == [[7, 16], [16, 52]]
    assert made[3].tolist() == [[6, 15], [15, 51]]


def test_the_documented_use_of_an_event(hold: Hold) -> None:
    s1, s2, e = side(), side(), paddle.device.Event()
    data1, data2 = paddle.ones(shape=[20]), paddle.ones(shape=[20])
    paddle.device.synchronize()
    gate = hold(s1)
    with paddle.device.stream_guard(s1):
        data3 = data1 + data2
    s1.record_event(e)
    s2.wait_event(e)
    with paddle.device.stream_guard(s2):
        data4 = data1 + data3
    assert s2.query() is False
    gate.open()
    s2.synchronize()
    assert data4.numpy().tolist() == [3.0] * 20


def test_reading_waits_for_the_stream_that_made_the_contents(hold: Hold) -> None:
    s, x = side(), six()
    gate = hold(s)
    with paddle.device.stream_guard(s):
        y = x * 2
    gate.open()
    assert y.numpy().tolist() == [[0, 2, 4], [6, 8, 10]]


def test_tensors_are_on_the_device_of_their_place(hold: Hold) -> None:
    x = paddle.to_tensor([1.0, 2.0], place=paddle.CUDAPlace(1))
    assert x.place == paddle.CUDAPlace(1)
    y = x + 1
    assert y.place == paddle.CUDAPlace(1)
    assert y.tolist() == [2, 3]
    gate = hold(paddle.device.current_stream("gpu:1"))
    z = x * 2
    assert paddle.device.current_stream("gpu:0").query() is True
    assert paddle.device.current_stream("gpu:1").query() is False
    gate.open()
    assert z.cpu().place == paddle.CPUPlace()
    assert z.cuda(0).place == paddle.CUDAPlace(0)
    assert (z.cuda(0) + paddle.ones([2])).tolist() == [3, 5]
    assert paddle.ones([1], device="gpu:1").place == paddle.CUDAPlace(1)
    assert x.cuda(1) is x
    assert x.to("gpu:0").place == paddle.CUDAPlace(0)
    assert x.to("cpu", "int32").dtype == paddle.int32
    assert x.to(paddle.ones([1], dtype="float64")).dtype == paddle.float64


@pytest.mark.row(71)
def test_the_device_of_a_tensor() -> None:
    assert paddle.get_device(paddle.ones([1])) == 0
    assert paddle.get_device(paddle.ones([1], device="gpu:1")) == 1
    assert paddle.get_device(paddle.to_tensor([1], place=paddle.CPUPlace())) == -1


@pytest.mark.row(90)
def test_copies_between_places_keep_the_contents(backend: str) -> None:
    x = paddle.to_tensor(np.arange(6, dtype=np.float32), place=paddle.CPUPlace())
    there = x.to("custom_cpu:1") if backend == "host" else x.cuda(1)
    assert there.place._index == 1
    assert there.cpu().tolist() == x.tolist() == (there * 2 / 2).cpu().tolist()
    # An operation on both is one of the device.
    assert (there + x).place == there.place
    assert (there + x).tolist() == (x + x).tolist()


def test_tensors_of_a_cpu_place_are_computed_by_the_caller(on_cpu: None) -> None:
    with Trace() as trace:
        x = six()
        y = paddle.matmul(x, x.T)
        y[0] = 1
        y.add_(paddle.ones([2, 2]))
    assert not trace.operations
    assert repr(y) == (
        "Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,\n"
        "       [[2. , 2. ],\n        [15., 51.]])"
    )


OPERATIONS = [
    "x + 1", "x - 1", "x * 2", "x / 2", "x // 2", "x % 2", "x ** 2", "2 + x", "2 - x", "2 / x", "i + 1", "i + 1.5",
    "i / 2", "i // 2", "-x", "abs(-x)", "x < 2", "x >= 2", "x == 2", "x != 2", "x @ x.T", "x.T", "x[0]", "x[:, 1]",
    "x[::2]", "x[None]", "i << 2", "~b", "b & b", "b - b",
]  # fmt: skip


@pytest.mark.parametrize("expression", OPERATIONS)
def test_operations_give_what_numpy_gives(expression: str) -> None:
    hosts = {
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "i": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([True, False]),
    }
    mine = eval(expression, {name: paddle.to_tensor(host) for name, host in hosts.items()})
    with np.errstate(all="ignore"):
        theirs = eval(expression.replace("b - b", "b ^ b"), hosts)
    assert isinstance(mine, paddle.Tensor)
    assert list(mine.shape) == list(np.shape(theirs))
    assert np.allclose(mine.numpy(), theirs, rtol=1e-6)


def test_element_types() -> None:
    x, i = six(), paddle.to_tensor([1, 2], dtype="int32")
    for made, name in (
        (paddle.to_tensor(1), "int64"), (paddle.to_tensor(1.5), "float32"), (paddle.to_tensor(True), "bool"),
        (paddle.to_tensor(np.ones(2)), "float64"), (paddle.to_tensor(1 + 2j), "complex64"), (i / 2, "float32"),
        (i + 1.5, "float32"), (i + 1, "int32"), (x.astype("int8"), "int8"),
        (paddle.full([2], 3), "float32"), (paddle.full([2], True), "bool"),
        (x + x.astype("float64"), "float64"), (x + paddle.to_tensor(2), "float32"), (x == 1, "bool"),
    ):  # fmt: skip
        assert str(made.dtype) == f"paddle.{name}"
    for wrong in (lambda: i + paddle.ones([2]), lambda: i < paddle.ones([2]), lambda: i + i.astype("int64")):
        with pytest.raises(TypeError, match="Type promotion only support"):
            wrong()
    assert x.astype("float32") is x
    assert repr(paddle.float32) == "<DataType.FLOAT32: 10>"
    assert paddle.to_tensor([1.5], dtype=paddle.float64).dtype is paddle.float64
    for kind in ("abc", "uint16"):
        with pytest.raises(TypeError, match="dtype must be any of"):
            paddle.ones([1], dtype=kind)
    with pytest.raises(TypeError, match="bfloat16"):
        paddle.ones([1], dtype="bfloat16")
    paddle.set_default_dtype("float64")
    try:
        assert (paddle.ones([1]).dtype, paddle.to_tensor([1.5]).dtype) == (paddle.float64, paddle.float64)
    finally:
        paddle.set_default_dtype("float32")
    with pytest.raises(TypeError, match="set_default_dtype"):
        paddle.set_default_dtype("int32")


def test_assignment_operators_make_new_tensors_and_underscore_methods_work_in_place() -> None:
    x = same = paddle.to_tensor([4.0, 6.0])
    x += 2
    x /= 2
    assert (x.tolist(), same.tolist()) == ([3, 4], [4, 6])
    same.subtract_(paddle.ones([2])).multiply_(paddle.to_tensor([2.0, 2.0]))
    assert same.tolist() == [6, 10]
    same[0] = 1.5
    same[1:] = paddle.to_tensor([7.0])
    assert same.tolist() == [1.5, 7]
    assert same.fill_(3.0).tolist() == [3, 3] and same.zero_().tolist() == [0, 0]
    y = six()
    y[0][1] = 9
    y.T[2] = 8
    assert y.tolist() == [[0, 9, 8], [3, 4, 8]]


def test_wrong_arguments() -> None:
    x = six()
    for wrong, kind, text in (
        (lambda: paddle.to_tensor("a"), TypeError, "Can't constructs"),
        (lambda: paddle.to_tensor(None), TypeError, "Can't constructs"),
        (lambda: paddle.to_tensor([[1], [1, 2]]), ValueError, "inhomogeneous"),
        (lambda: x + None, TypeError, "must be int, float, bool or Tensor, but got NoneType"),
        (lambda: operator.add(x, [1]), TypeError, "but got list"),
        (lambda: x < "a", TypeError, "but got str"),
        (lambda: x.add(1), ValueError, "argument 'y' .position 1. must be Tensor, but got int"),
        (lambda: paddle.add(1, x), ValueError, "argument 'x' .position 0. must be Tensor, but got int"),
        (lambda: paddle.ones("a"), TypeError, "must be list, tuple, int, or Tensor, but got str"),
        (lambda: paddle.ones([-2]), ValueError, "InvalidArgument"),
        (lambda: x @ x, ValueError, "error dim"),
        (lambda: x + paddle.ones([2]), ValueError, "broadcast"),
        (lambda: x[5], IndexError, "OutOfRange"),
        (lambda: x[0, 1, 2], IndexError, "OutOfRange"),
        (lambda: x["a"], hs.NotSupportedError, "a part is selected by ints"),
        (lambda: x[x > 2], hs.NotSupportedError, "a part is selected by ints"),
        (lambda: x.item(), ValueError, "numel == 1"),
        (lambda: bool(x), AssertionError, "converted to bool"),
        (lambda: float(x), AssertionError, "converted to float"),
        (lambda: len(x[0, 0]), AssertionError, "0-D"),
        (lambda: x.backward(), hs.NotSupportedError, "paddle.Tensor.backward is not built yet"),
        (lambda: x.nothing, AttributeError, "no attribute 'nothing'"),
    ):
        with pytest.raises(kind, match=text):
            wrong()
    with pytest.raises(ValueError, match="Value type error"):
        x[0] = "a"
    assert (x == None, x != None, x == "a") == (False, True, False)  # noqa: E711


def test_python_protocols_of_tensors() -> None:
    x = six()
    assert [row.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]
    assert (len(x), 3.0 in x, int(x[1, 0]), float(x[0, 1]), bool(x[0, 1])) == (2, True, 3, 1.0, True)
    assert (x.shape, x.ndim, x.size, x.nbytes) == ([2, 3], 2, 6, 24)
    assert isinstance(np.ones(3, np.float32) + x, paddle.Tensor)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), paddle.to_tensor(x)):
        made[0, 0] = 9
        assert (made[0, 0].item(), x[0, 0].item()) == (9, 0)
    assert paddle.is_tensor(x) and not paddle.is_tensor(1)
    assert x.stop_gradient is True


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ([1.0, 2.5], "[1.        , 2.50000000]"),
        ([-1.0, 0, 1], "[-1.,  0.,  1.]"),
        ([-1.5, 2.25, 1e10], "[-1.50000000 ,  2.25000000 , 10000000000.]"),
        ([-20.0, 3.5], "[-20.      , 3.50000000]"),
        ([5.0, -2.5, 100.0], "[ 5.        , -2.50000000,  100.      ]"),
        ([[-1, 20], [300, 4]], "[[-1 ,  20],\n        [300,  4 ]]"),
        ([100000.0, 0.5], "[100000.   , 0.50000000]"),
        ([True, False], "[True , False]"),
        ([[0, 20], [3, 4]], "[[0 , 20],\n        [3 , 4 ]]"),
        (-2.5, "-2.50000000"),
        ([1 + 2j], "[(1.00000000+2.00000000j)]"),
        ([], "[]"),
        ([float("nan"), 1.0], "[nan, 1. ]"),
    ],
)
def test_text_of_tensors(data: Any, shown: str) -> None:
    x = paddle.to_tensor(data)
    head = f"Tensor(shape={list(x.shape)}, dtype={x.dtype.name.lower()}, place=Place(gpu:0), stop_gradient=True,"
    assert repr(x) == str(x) == f"{head}\n       {shown})"
    assert "[1., 1., 1., ..., 1., 1., 1.]" in repr(paddle.ones([1200]))


def test_functions_on_two_tensors() -> None:
    x = six()
    assert paddle.matmul(x, x, transpose_y=True).tolist() == [[5, 14], [14, 50]]
    assert paddle.subtract(paddle.add(x, x), x).tolist() == x.tolist()
    assert paddle.divide(paddle.multiply(x, x), x + 1).tolist() == x.multiply(x).divide(x + 1).tolist()


def test_random_numbers_follow_their_state() -> None:
    paddle.seed(7)
    a = paddle.randn([4])
    state = paddle.device.get_rng_state()
    b = paddle.rand([4])
    paddle.device.set_rng_state(state)
    assert paddle.rand([4]).tolist() == b.tolist()
    paddle.device.manual_seed(7)
    assert paddle.randn([4]).tolist() == a.tolist()
    paddle.device.manual_seed_all(7.9)
    states = paddle.get_rng_state()
    assert (paddle.randn([4]).tolist(), state.current_seed()) == (a.tolist(), 7)
    paddle.set_rng_state(states)
    assert paddle.randn([4]).tolist() == a.tolist()
    assert paddle.seed(3).initial_seed() == 3
    assert paddle.device.cuda.get_rng_state().current_seed() == 3
    for name in ("get_rng_state", "set_rng_state", "manual_seed", "manual_seed_all", "nvtx", "is_bf16_supported"):
        assert getattr(paddle.cuda, name) is getattr(paddle.device, name)
    for wrong, kind in (
        (lambda: paddle.seed("a"), ValueError),
        (lambda: paddle.seed(-1), TypeError),
        (lambda: paddle.device.set_rng_state(1), TypeError),
        (lambda: paddle.device.manual_seed("x"), ValueError),
        (lambda: paddle.get_rng_state(0), ValueError),
    ):
        with pytest.raises(kind):
            wrong()


def test_small_functions_of_the_device_module(backend: str) -> None:
    device = paddle.device
    assert device.device_count() == device.device_count("gpu") == hs.device_count()
    assert device.device_count("cpu") == device.device_count("xpu") == 0
    if backend == "host":
        assert device.device_count("custom_cpu") == hs.device_count()
    for wrong in ("abc", 1):
        with pytest.raises(ValueError, match="device_type"):
            device.device_count(wrong)
    assert device.is_bf16_supported() is False
    assert device.ipc_collect() is None
    assert device.nvtx.range_push("a") is device.nvtx.range_pop() is None
    with pytest.raises(TypeError, match="123"):
        device.nvtx.range_push(123)


@pytest.mark.parametrize("priority", [3, 0, -5, "1", 1.5])
def test_a_priority_that_means_nothing_is_the_normal_one(priority: Any) -> None:
    assert device_priority(priority) == device_priority(2) != device_priority(1)


def device_priority(value: Any) -> int:
    stream = paddle.device.Stream(priority=value)
    return int(hs.Stream.from_handle(stream.handle).priority)


@pytest.mark.parametrize("name", ["O", "M8[s]", "<f4", "", None, np.dtype("float32")])
def test_a_dtype_is_one_of_the_names(name: Any) -> None:
    with pytest.raises(TypeError, match="dtype must be any of"):
        paddle.dtype(name)


@pytest.mark.parametrize("contents", [[None, 1], ["a", "b"], [np.datetime64("2020-01-01"), None]])
@pytest.mark.parametrize("operate", [operator.add, operator.pow, operator.lt, operator.eq, operator.truediv])
def test_an_array_without_numbers_is_no_operand(operate: Callable[..., Any], contents: list[Any]) -> None:
    array = np.array(contents)
    with pytest.raises(TypeError, match="dtype must be any of"):
        operate(paddle.to_tensor([1.0, 2.0]), array)


def test_contents_for_no_room_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "normal", lambda shape: pytest.fail("made before there was room"))
    with pytest.raises(hs.OutOfMemoryError):
        paddle.randn([1 << 40], device="gpu:0")
