"""mindspore: tensors on streams, their order, and what outlives what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.mindspore as ms
import numpy as np
import pytest
from halstream.mindspore import Tensor, hal, nn, ops
from halstream.mindspore.ops import operations as P
from halstream.testing import Trace
from mindspore_help import ascend, on_target, reserve_pinned_memory

__all__ = ["ascend", "on_target"]

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]

Hold = Callable[[Any], Any]


@pytest.mark.row(1)
def test_an_operator_runs_on_the_current_stream(hold: Hold) -> None:
    s = hal.Stream()
    gate = hold(s)
    with hal.StreamCtx(s):
        y = abs(Tensor(-2.0))
    assert s.query() is False
    assert hal.default_stream().query() is True
    gate.open()
    s.synchronize()
    assert y.item() == 2.0


def test_every_operation_returns_before_it_runs(hold: Hold) -> None:
    s = hal.Stream()
    a, b = Tensor(np.eye(3), ms.float32), Tensor(np.ones((3, 3)), ms.float32)
    hal.synchronize()
    gate = hold(s)
    with hal.StreamCtx(s), Trace() as trace:
        made = [
            a + b, a - 1, 2 * a, a / b, a @ b, -a, abs(a), a == b, a != 1, a.astype(ms.int32), Tensor(a),
            ops.add(a, b), ops.sub(a, b), ops.mul(a, b), ops.div(a, b), ops.matmul(a, b), ops.mm(a, b),
            ops.bmm(a, b), ops.abs(a), ops.sin(a), ops.sum(a),
            a // b, a % 2, a**2, a < b, a.sum(0), a[1:].copy(), a.T.copy(), a.move_to("CPU", blocking=False),
        ]  # fmt: skip
        a[0] = 4
    calls = [o for o in trace.operations if o.kind == "call" and o.stream == s.id]
    assert len(calls) == len(made) + 1
    assert all(len(o.writes) == 1 for o in calls)
    assert s.query() is False
    gate.open()
    x, y = np.eye(3, dtype=np.float32), np.ones((3, 3), np.float32)
    expected = [
        x + y, x - 1, 2 * x, x / y, x @ y, -x, x, x == y, x != 1, x, x, x + y, x - y, x * y, x / y, x @ y,
        x @ y, x @ y, x, np.sin(x), x.sum(),
        x // y, x % 2, x**2, x < y, x.sum(0), x[1:], x.T, x,
    ]  # fmt: skip
    for mine, theirs in zip(made, expected, strict=True):
        assert np.allclose(mine.asnumpy(), theirs, rtol=1e-6)
    x[0] = 4
    assert np.array_equal(a.asnumpy(), x)


def test_what_an_operation_reads_and_writes_is_known() -> None:
    a, b = ops.ones(4), ops.ones(4)
    with Trace() as trace:
        c = a + b
    # On a vendor's backend the copies around the function say it.
    reads = {block for o in trace.operations for block in o.reads}
    writes = {block for o in trace.operations for block in o.writes if o.kind in ("call", "copy")}
    assert reads >= {(x._block().ptr, 16) for x in (a, b)}
    assert (c._block().ptr, 16) in writes
    assert writes.isdisjoint((x._block().ptr, 16) for x in (a, b))


@pytest.mark.parametrize("read", [str, repr, Tensor.asnumpy, Tensor.numpy, Tensor.tolist, np.asarray])
def test_reading_waits_for_the_stream_that_made_the_contents(read: Any, hold: Hold) -> None:
    s, other = hal.Stream(), hal.Stream()
    with hal.StreamCtx(s):
        y = ops.ones(1)
        # Runs after the addition, on the same stream: done once reading may return.
        gate = hold(s)
        y += 1
    hold(other)
    with hal.StreamCtx(other):
        opener = hs.Stream(non_blocking=True)
        opener.call(gate.open)
        assert "2" in str(read(y))
    assert s.query() is True
    assert other.query() is False


@pytest.mark.needs("held-streams")
def test_contents_from_the_host_are_copied_at_once_also_while_streams_are_blocked(hold: Hold) -> None:
    big = np.arange(100_000.0)
    a = Tensor(big)
    s1, s2 = hal.Stream(), hal.Stream()
    reserve_pinned_memory(a, 10)
    hold(hal.default_stream())
    hold(s1)
    with hal.StreamCtx(s1):
        a + 1
    with hal.StreamCtx(s2):
        b = a * 2
    assert np.array_equal(b.asnumpy(), big * 2)
    assert np.array_equal(a.asnumpy(), big)


def test_the_source_may_change_at_once() -> None:
    source = np.ones(3)
    a = Tensor(source)
    source[:] = 7
    assert a.tolist() == [1, 1, 1]
    out = a.asnumpy()
    out[:] = 7
    assert a.tolist() == [1, 1, 1]


@pytest.mark.row(10)
def test_a_product_of_a_matrix_and_a_vector_on_two_streams() -> None:
    a, b = Tensor([[1.0, 2.0]]), Tensor([3.0, 4.0])
    made = []
    for s in (hal.Stream(), hal.Stream()):
        with hal.StreamCtx(s):
            made.append(ops.matmul(a, b))
    hal.synchronize()
    assert [y.tolist() for y in made] == [[11.0], [11.0]]
    assert made[0].shape == (1,)


@pytest.mark.row(11)
def test_a_product_in_place_is_visible_after_its_event(hold: Hold, ascend: None) -> None:
    @ms.jit
    def plus_two(x: Tensor) -> Tensor:
        return x + 2

    s1, event = hal.Stream(), hal.Event()
    a = same = Tensor([[1.0, 1.0], [1.0, 1.0]])
    gate = hold(hal.default_stream())
    a *= 4
    event.record()
    with hal.StreamCtx(s1):
        s1.wait_event(event)
        c = ops.matmul(plus_two(a), a)
    assert a is same
    assert s1.query() is False
    gate.open()
    hal.synchronize()
    assert c.tolist() == [[48.0, 48.0], [48.0, 48.0]]


@pytest.mark.row(18)
def test_a_tensor_deleted_while_a_stream_reads_it_keeps_its_values(hold: Hold) -> None:
    image = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 100
    weight = Tensor(np.ones((64, 8)), ms.float32)
    s = hal.Stream()
    for _ in range(3):
        a = Tensor(image) + 1  # made on the default stream, used on s
        hal.synchronize()
        gate = hold(s)
        with hal.StreamCtx(s):
            b = a * 2
            c = ops.matmul(a, weight)
        del a
        # As large, on the stream that made it: would get the block if it were free.
        filled = [ops.zeros(image.shape) for _ in range(4)]
        hal.default_stream().synchronize()
        gate.open()
        s.synchronize()
        assert np.allclose(b.asnumpy(), (image + 1) * 2, rtol=1e-3, atol=1e-3)
        assert np.allclose(c.asnumpy(), (image + 1) @ np.ones((64, 8)), rtol=1e-3, atol=1e-3)
        assert all(not f.asnumpy().any() for f in filled)


@pytest.mark.row(90)
def test_the_first_operation_initialises_the_device(child: Callable[..., Any]) -> None:
    done = child(
        """
        import numpy as np
        import halstream.mindspore as ms
        from halstream.mindspore import Tensor, ops

        target = ms.context.get_context("device_target")
        ms.context.set_context(device_target=target)
        a = Tensor(np.ones([1, 2]), ms.float32)
        assert not ms.hal.is_initialized(target)
        ops.add(a, Tensor(np.ones([1, 2]), ms.float32)).asnumpy()
        print(ms.hal.is_initialized(target))
        """
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_the_device_may_be_chosen_after_tensors_were_made(backend: str, child: Callable[..., Any]) -> None:
    # The host device goes by any target's name.
    target = "Ascend" if backend == "host" else "GPU"
    done = child(
        f"""
        import halstream.mindspore as ms

        a = ms.Tensor([1.0])
        print(a)
        ms.set_device("{target}", 1)
        print(a + 1, ms.current_stream())
        """
    )
    expected = f"[1.]\n[2.] Stream(device_name={target}, device_id:1, stream id:0)\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_the_other_current_device_holds_its_own_tensors() -> None:
    hs.set_device(1)
    s = hal.Stream()
    with hal.StreamCtx(s):
        a = ops.ones(3) + 1
    assert a._block().device.ordinal == s.device_id == 1
    assert a.tolist() == [2, 2, 2]


def test_launch_blocking_waits_for_each_operation(child: Callable[..., Any]) -> None:
    done = child(
        """
        import halstream.mindspore as ms

        for switch in (ms.runtime.launch_blocking, lambda: ms.set_context(pynative_synchronize=True)):
            switch()
            s = ms.Stream()
            s.delay(0.05)
            x = ms.ops.ones(3)
            with ms.StreamCtx(s):
                x + 1
            print(s.query())
        """
    )
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr


def test_cells_and_operations_as_objects() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.abs, self.add = P.Abs(), P.Add()

        @ms.jit(backend="ms_backend")  # type: ignore[untyped-decorator]
        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return self.add(self.abs(x), y)

    assert Net()(Tensor([-1.0]), Tensor([2.0])).tolist() == [3.0]
    with pytest.raises(AttributeError):
        nn.Cell()()


def test_reading_contents_raises_the_first_error_of_the_stream() -> None:
    def fail(*, out: Any) -> None:
        raise MemoryError("no room for it")

    broken = Tensor._result(fail, (1,), np.float32)
    with pytest.raises((MemoryError, hs.HostFunctionError), match="no room"):
        broken.asnumpy()
    assert ops.ones(1).item() == 1.0
