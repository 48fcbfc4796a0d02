"""The rules for the real torch on the host device, each with its number in the contract.

Streams are held by gates, so that what a test says about pending work does not depend on how
fast the machine is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream.testing import Gate, Operation, Trace
from stream_help import own, waits

Hold = Callable[[Any], Gate]


def operators(trace: Trace, name: str) -> list[Operation]:
    """Return the operations of an operator."""
    return [operation for operation in trace.operations if operation.name == name]


def span(tensor: Any) -> tuple[int, int]:
    """Return the address and the bytes of a contiguous tensor."""
    return tensor.data_ptr(), tensor.numel() * tensor.element_size()


def test_F1_an_operator_runs_in_the_order_of_its_stream(torch: Any, held: Hold) -> None:
    s = torch.cuda.Stream()
    x = torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    gate = held(s)
    with torch.cuda.stream(s):
        y = x + 1
        y *= 3
    assert y.shape == (4,)
    assert not s.query()
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        assert (x + 2).tolist() == [2, 2, 2, 2]
    assert not s.query()
    gate.open()
    s.synchronize()
    assert y.tolist() == [3, 3, 3, 3]


def test_F1_an_operator_runs_on_the_device_of_its_tensors(torch: Any, held: Hold) -> None:
    x = torch.ones(2, device="cuda:1")
    torch.cuda.synchronize(1)
    held(torch.cuda.default_stream(0))
    assert (x + 1).tolist() == [2, 2]  # the current device is 0, and its stream is held
    assert (x + 1).device == torch.device("cuda", 1)


@pytest.mark.parametrize("name", ["item", "nonzero", "tolist", "equal", "mask"])
def test_F1_what_needs_values_waits(torch: Any, held: Hold, name: str) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "item": lambda x: x[1].item(),
        "nonzero": lambda x: x.nonzero().flatten().tolist(),
        "tolist": lambda x: x.tolist(),
        "equal": lambda x: torch.equal(x, torch.tensor([0.0, 5.0], device="cuda")),
        "mask": lambda x: x[x > 1].shape,
    }
    right = {"item": 5, "nonzero": [1], "tolist": [0, 5], "equal": True, "mask": (1,)}
    x = torch.zeros(2, device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    x[1].fill_(5)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(calls[name](x)))
    thread.start()
    assert waits(thread)
    gate.open()
    thread.join(20)
    assert found == [right[name]]


def test_F1_results_have_the_shapes_layouts_and_types_of_the_cpu(torch: Any) -> None:
    """Also where an earlier call of the operator differs in nothing but one of these, or in a number."""
    tensors = [torch.ones(3, 4, dtype=dtype) for dtype in (torch.float32, torch.float64, torch.int32, torch.bool)]
    tensors += [torch.ones(4, 3).t(), torch.ones(3, 8)[:, ::2], torch.ones(2, 6)]
    calls: list[Callable[[Any], Any]] = [
        lambda x: x + 1, lambda x: x * 1.5, lambda x: x.sum(0), lambda x: x.sum(1), lambda x: x.sum(0, keepdim=True),
        lambda x: x.to(torch.float16), lambda x: x.clone(), lambda x: torch.cat([x, x], 1),
        lambda x: torch.arange(x.shape[0], x.shape[1], 1, device=x.device),
        lambda x: torch.arange(x.shape[0], x.shape[1], 0.5, device=x.device),
    ]  # fmt: skip
    for call in calls:
        for tensor in tensors:
            there, here = call(tensor.cuda()), call(tensor)
            assert (there.shape, there.stride(), there.dtype) == (here.shape, here.stride(), here.dtype)
            assert torch.equal(there.cpu(), here)


def test_F1_an_index_makes_the_host_wait_only_if_it_is_a_mask(torch: Any, held: Hold) -> None:
    x = torch.arange(4.0, device="cuda")
    flags = x > 1
    places = torch.tensor([3, 0], device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    there, chosen = x[places], flags[places]
    with pytest.raises(hs.StallError, match="gate"):
        x[flags]
    gate.open()
    assert there.tolist() == [3, 0]
    assert chosen.tolist() == [True, False]
    assert x[flags].tolist() == [2, 3]


def test_F2_an_operator_is_listed_with_what_its_schema_says(torch: Any) -> None:
    x, y = torch.ones(8, device="cuda"), torch.ones(8, device="cuda")
    out = torch.empty(8, device="cuda")
    with Trace() as trace:
        z = x * y
        x.add_(y)
        torch.sub(x, y, out=out)
        torch.cuda.synchronize()
    (mul,) = operators(trace, "aten::mul")
    assert (sorted(mul.reads), mul.writes) == (sorted([span(x), span(y)]), (span(z),))
    (add,) = operators(trace, "aten::add_")
    assert (sorted(add.reads), add.writes) == (sorted([span(x), span(y)]), (span(x),))
    (sub,) = operators(trace, "aten::sub")
    assert (sorted(sub.reads), sub.writes) == (sorted([span(x), span(y)]), (span(out),))


def test_F2_of_a_view_the_bytes_of_the_view(torch: Any) -> None:
    x = torch.ones(4, 8, device="cuda")
    with Trace() as trace:
        x[1].fill_(2)
        x[:, 2:4].neg_()
        torch.cuda.synchronize()
    (fill,) = operators(trace, "aten::fill_")
    assert fill.writes == (span(x[1]),)
    (neg,) = operators(trace, "aten::neg_")
    assert set(neg.writes) == {(x.data_ptr() + 32 * row + 8, 8) for row in range(4)} == set(neg.reads)


def test_F2_halves_of_one_tensor_on_two_streams_have_nothing_to_do_with_each_other(torch: Any) -> None:
    def work(end: int) -> int:
        x = torch.zeros(8, device="cuda")
        torch.cuda.synchronize()
        a, b = torch.cuda.Stream(), torch.cuda.Stream()
        with hs.sanitize(on="collect") as report:
            with torch.cuda.stream(a):
                x[:end].fill_(1)
            with torch.cuda.stream(b):
                x[4:].fill_(2)
            torch.cuda.synchronize()
        return len(report.races)

    assert work(end=4) == 0
    assert work(end=5) == 1


def test_F3_numbers_and_cpu_tensors_take_part_with_their_values_at_the_call(torch: Any, held: Hold) -> None:
    x = torch.tensor([5.0, 6.0], device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    number = torch.tensor(3.0)
    y = x + number
    number.fill_(99)
    gate.open()
    assert y.tolist() == [8, 9]


def test_F4_what_is_wrong_with_the_call_is_an_error_of_the_call(torch: Any, held: Hold) -> None:
    x = torch.ones(2, 3, device="cuda")
    torch.cuda.synchronize()
    held(torch.cuda.default_stream())
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"):
        x @ x
    with pytest.raises(RuntimeError, match=r"same number of elements|inconsistent tensor size"):
        x[0].dot(x.flatten())
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.ones(2, dtype=torch.int64, device="cuda").add_(0.5)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.ones(2, 3, device="cuda:1")


def test_F5_backward_runs_on_the_streams_of_forward(torch: Any) -> None:
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    v = torch.ones(4, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    with Trace() as trace, hs.sanitize(on="raise"):
        with torch.cuda.stream(a):
            doubled = v.sin()
        b.wait_stream(a)
        with torch.cuda.stream(b):
            loss = doubled.exp().sum()
        torch.cuda.current_stream().wait_stream(b)
        loss.backward()
        assert float(v.grad.sum()) != 0
    (sine,), (exp,) = operators(trace, "aten::sin"), operators(trace, "aten::exp")
    assert sine.stream != exp.stream
    # The gradient of exp is its own result times what comes in; that of sin is the cosine times what comes in.
    (cosine,) = operators(trace, "aten::cos (backward)")
    assert cosine.stream == sine.stream
    assert {op.stream for op in operators(trace, "aten::mul (backward)")} == {sine.stream, exp.stream}


def test_F5_after_backward_the_current_stream_has_waited_for_the_leaves(torch: Any, held: Hold) -> None:
    s = torch.cuda.Stream()
    v = torch.ones(4, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(s):
        loss = (v * 3).sum()
    gate = held(s)
    with hs.sanitize(on="raise"):
        with torch.cuda.stream(s):
            loss.backward()
        torch.cuda.current_stream().wait_stream(s)
        total = v.grad.sum()
        assert not torch.cuda.current_stream().query()
        gate.open()
        assert float(total) == 12


def test_F9_random_numbers_do_not_depend_on_when_operators_run(torch: Any, held: Hold) -> None:
    a, b = torch.cuda.Stream(), torch.cuda.Stream()

    def numbers(first: Any, second: Any) -> list[Any]:
        torch.cuda.manual_seed(3)
        gate = held(first)
        with torch.cuda.stream(first):
            x = torch.rand(8, device="cuda")
        with torch.cuda.stream(second):
            y = torch.rand(8, device="cuda")
        second.synchronize()
        gate.open()
        first.synchronize()
        return [x.tolist(), y.tolist()]

    torch.cuda.synchronize()
    before = torch.random.get_rng_state()
    found = numbers(a, b)
    assert numbers(b, a) == found
    assert found[0] != found[1]
    assert torch.equal(torch.random.get_rng_state(), before)


def test_F11_each_thread_has_its_own_current_stream(torch: Any) -> None:
    s = torch.cuda.Stream()
    found = []
    with torch.cuda.stream(s):
        thread = threading.Thread(target=lambda: found.append(torch.cuda.current_stream()))
        thread.start()
        thread.join(10)
        assert torch.cuda.current_stream() == s
        assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
    assert found == [torch.cuda.default_stream()]


def test_F11_streams_come_from_a_pool_and_are_non_blocking(torch: Any, held: Hold) -> None:
    streams = [torch.cuda.Stream(priority=-1) for _ in range(33)]
    assert len(set(streams)) == 32
    assert streams[32] == streams[0]
    assert torch.cuda.Stream() not in streams
    torch.cuda.synchronize()
    held(torch.cuda.default_stream())
    with torch.cuda.stream(streams[0]):
        x = torch.ones(2, device="cuda")
    streams[0].synchronize()
    assert not torch.cuda.default_stream().query()
    assert own(streams[0]).query()
    del x


def test_F3_a_number_that_is_stored_makes_nobody_wait(torch: Any, held: Hold) -> None:
    """Also where torch makes a CPU tensor of it and copies that; a tensor of the program is waited for."""
    x = torch.zeros(3, device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    x[1] = 5
    x[2] = True
    with pytest.raises(hs.StallError, match="gate"):
        x[0] = torch.tensor(7.0)
    gate.open()
    assert x.tolist() == [7, 5, 1]


def test_W2_a_thread_of_autograd_that_has_run_python_ends_no_wait(torch: Any, held: Hold) -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: (threading.current_thread(), gradient)[1])  # Python knows the thread then
    y.sum().backward()
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    with pytest.raises(hs.StallError, match="gate"):
        x.sum().item()
    gate.open()


def test_F4_a_wait_that_fails_leaves_the_operator_to_its_stream(torch: Any, held: Hold) -> None:
    x = torch.ones(2, device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    with pytest.raises(hs.StallError, match="gate"):
        x.sum().item()
    gate.open()
    assert x.sum().item() == 2
