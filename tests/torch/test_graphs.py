"""F30: torch.cuda.CUDAGraph and torch.cuda.graph, with torch's own source over the runtime's graphs."""

from __future__ import annotations

import copy
import functools
import gc
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("collected")


@pytest.fixture(autouse=True)
def _default_stream(torch: Any) -> Iterator[None]:
    """Make the default stream current again: torch before 2.15 does not, where the end of a capture fails."""
    yield
    torch.cuda.set_stream(torch.cuda.default_stream())


def test_F30_a_replay_runs_the_operators_on_the_memory_of_the_capture(torch: Any, captured: Any) -> None:
    x = torch.zeros(100, device="cuda")
    graph, y = captured(lambda: (x + 1).mul_(2) + x)
    for value in (3.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert y.tolist() == [(value + 1) * 2 + value] * 100


def test_F30_nothing_runs_during_the_capture(torch: Any, captured: Any) -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.synchronize()
    graph, _ = captured(lambda: x.add_(1))
    assert x.tolist() == [1.0] * 4
    graph.replay()
    graph.replay()
    assert x.tolist() == [3.0] * 4


def test_F30_a_training_step_is_that_of_the_same_model_without_graphs(torch: Any) -> None:
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).cuda()
    other = copy.deepcopy(model)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01, capturable=True) for m in (model, other)]
    static_input, static_target = torch.zeros(8, 16, device="cuda"), torch.zeros(8, 1, device="cuda")

    def step(m: Any, optimizer: Any, inputs: Any, target: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(m(inputs), target)
        loss.backward()
        optimizer.step()
        return loss

    batches = [(torch.randn(8, 16).cuda(), torch.randn(8, 1).cuda()) for _ in range(6)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for inputs, target in batches[:3]:
            step(model, optimizers[0], inputs, target)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizers[0].zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step(model, optimizers[0], static_input, static_target)
    losses = []
    for inputs, target in batches[3:]:
        static_input.copy_(inputs)
        static_target.copy_(target)
        graph.replay()
        losses.append(loss.item())
    expected = [step(other, optimizers[1], inputs, target).item() for inputs, target in batches]
    assert losses == expected[3:]
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_F30_random_operators_draw_anew_in_each_replay_as_without_a_graph(torch: Any, captured: Any) -> None:
    torch.cuda.manual_seed(11)
    expected = [(torch.rand(50, device="cuda"), torch.randn(50, device="cuda")) for _ in range(3)]
    torch.cuda.manual_seed(11)
    x = torch.empty(50, device="cuda")
    graph, (uniform, normal) = captured(lambda: (torch.rand_like(x), torch.randn_like(x)))
    for first, second in expected:
        graph.replay()
        assert torch.equal(uniform, first)
        assert torch.equal(normal, second)
    assert torch.equal(torch.rand(5, device="cuda").cpu(), torch.rand(5, device="cuda").cpu()) is False


def test_F30_a_generator_takes_part_if_the_graph_knows_it(torch: Any) -> None:
    generator = torch.Generator(device="cuda").manual_seed(5)
    expected = [torch.rand(9, device="cuda", generator=generator) for _ in range(2)]
    generator.manual_seed(5)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    graph.register_generator_state(generator)  # again: no difference
    with torch.cuda.graph(graph):
        numbers = torch.rand(9, device="cuda", generator=generator)
    for wanted in expected:
        graph.replay()
        assert torch.equal(numbers, wanted)
    unknown = torch.Generator(device="cuda")
    unknown_error = pytest.raises(RuntimeError, match="register_generator_state")
    with unknown_error, torch.cuda.graph(torch.cuda.CUDAGraph()):
        numbers.add_(1)
        torch.rand(9, device="cuda", generator=unknown)
    assert not torch.cuda.is_current_stream_capturing()


def test_F30_a_capture_leaves_the_numbers_outside_of_it_as_they_are(torch: Any, captured: Any) -> None:
    torch.cuda.manual_seed(2)
    expected = torch.rand(5, device="cuda")
    torch.cuda.manual_seed(2)
    x = torch.empty(5, device="cuda")
    captured(lambda: torch.rand_like(x))
    assert torch.equal(torch.rand(5, device="cuda"), expected)


def test_F30_what_is_computed_again_draws_the_same_numbers_again(torch: Any, captured: Any) -> None:
    def work() -> tuple[Any, Any]:
        x = torch.ones(40, device="cuda", requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(
            lambda x: x * torch.sigmoid(torch.randn(40, device="cuda")), x, use_reentrant=False
        )
        return y, torch.autograd.grad(y.sum(), x)[0]

    torch.cuda.manual_seed(42)
    value, gradient = work()
    graph, (again, gradient_again) = captured(work)
    torch.cuda.manual_seed(42)
    graph.replay()
    assert torch.equal(again, value)
    assert torch.equal(gradient_again, gradient)
    assert torch.equal(again, gradient_again)


def test_F30_branches_on_other_streams(torch: Any, captured: Any) -> None:
    x, side = torch.ones(64, device="cuda"), torch.cuda.Stream()

    def work() -> Any:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            left = x * 2
        right = x * 3
        torch.cuda.current_stream().wait_stream(side)
        return left + right

    graph, result = captured(work)
    x.fill_(2)
    graph.replay()
    assert result.tolist() == [10.0] * 64


def test_F30_a_stream_that_is_not_joined_is_an_error_that_names_the_line(torch: Any) -> None:
    x, side = torch.ones(64, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    wrong = pytest.raises(RuntimeError, match=r"(?s)test_graphs\.py.*never rejoined")
    with wrong, torch.cuda.graph(torch.cuda.CUDAGraph()):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.add_(1)
    side.synchronize()
    assert (x + 1).tolist() == [2.0] * 64


@pytest.mark.parametrize(
    "call",
    [lambda torch, x: x.sum().item(), lambda torch, x: torch.cuda.current_stream().synchronize(),
     lambda torch, x: x.cpu(), lambda torch, x: torch.nonzero(x), lambda torch, x: torch.cuda.synchronize(),
     lambda torch, x: torch.cuda.current_stream().query()],
    ids=["item", "synchronize", "cpu", "nonzero", "device", "query"],
)  # fmt: skip
def test_F30_what_waits_cannot_be_captured_and_the_stream_is_usable_afterwards(
    torch: Any, call: Callable[[Any, Any], Any]
) -> None:
    x = torch.ones(8, device="cuda")
    stream = torch.cuda.Stream()
    with pytest.raises(RuntimeError, match="captur"), torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
        x.add_(1)  # without it the graph that x.cpu() leaves is empty, of which torch warns
        call(torch, x)
    assert not stream.is_capturing()
    with torch.cuda.stream(stream):
        assert (torch.ones(8, device="cuda") + 1).sum().item() == 16


def test_F30_a_copy_from_pageable_memory_is_refused_and_one_from_pinned_memory_is_read_by_each_launch(
    torch: Any, captured: Any
) -> None:
    x, host = torch.zeros(6, device="cuda"), torch.zeros(6)
    for refused in (
        lambda: x.copy_(host, non_blocking=True),
        lambda: x.copy_(host),
        lambda: host.copy_(x, non_blocking=True),
        lambda: torch.tensor(-math.inf, device="cuda"),
    ):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x.add_(1)
            with pytest.raises(RuntimeError, match="unless the CPU tensor is pinned"):
                refused()
        graph.replay()  # the refusal has not invalidated the capture
    assert x.tolist() == [4.0] * 6
    pinned = torch.zeros(6, pin_memory=True)
    capture = functools.partial(captured, functools.partial(x.copy_, pinned, non_blocking=True))
    graph, _ = capture()
    for value in (1.0, 2.0):
        pinned.fill_(value)
        graph.replay()
        assert x.tolist() == [value] * 6
    del pinned, capture
    gc.collect()
    others = [torch.full((6,), -1.0, pin_memory=True) for _ in range(4)]
    graph.replay()
    assert x.tolist() == [2.0] * 6
    del others


def test_F30_what_broke_a_capture_is_named_and_is_the_context_of_the_error_at_its_end(torch: Any) -> None:
    x = torch.ones(8, device="cuda")
    graph = torch.cuda.graph(torch.cuda.CUDAGraph())
    with pytest.raises(torch.AcceleratorError, match="previous error during capture") as ended, graph:
        x.sum().item()
    first = ended.value.__context__
    assert not ended.value.__suppress_context__
    assert isinstance(first, torch.AcceleratorError)
    assert "not permitted when stream is capturing" in str(first)
    assert "aten::_local_scalar_dense waits for its stream" in str(first)


def test_F30_states_texts_and_bad_calls(torch: Any) -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=r"without a preceding successful capture|must have been called before"):
        graph.replay()  # torch 2.15 instantiates first
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.pool()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    with torch.cuda.stream(torch.cuda.Stream()):
        with pytest.raises(RuntimeError, match="Unknown capture error mode"):
            graph.capture_begin(capture_error_mode="whatever")
        with pytest.raises(RuntimeError, match="no capture is underway"):
            graph.capture_end()
        graph.capture_begin()
        assert torch.cuda.is_current_stream_capturing() and torch.cuda.current_stream().is_capturing()
        with pytest.warns(UserWarning, match="CUDA Graph is empty"):
            graph.capture_end()
        assert not torch.cuda.is_current_stream_capturing()
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            graph.capture_begin()
        graph.reset()
        graph.capture_begin()
        graph.reset()
        assert not torch.cuda.is_current_stream_capturing()


def test_F30_the_graph_can_be_kept_and_written(torch: Any, tmp_path: Path) -> None:
    x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        x.mul_(2)
    graph.debug_dump(str(tmp_path / "graph.dot"))
    text = (tmp_path / "graph.dot").read_text()
    assert "aten::mul_" in text and "test_graphs.py" in text
    assert graph.raw_cuda_graph() != 0
    graph.replay()
    assert x.tolist() == [2.0] * 4
    assert graph.raw_cuda_graph_exec() != 0


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match")
def test_F30_graphed_callables_have_the_values_and_gradients_of_the_module(torch: Any) -> None:
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)).cuda()
    other = copy.deepcopy(model)
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(4, 6, device="cuda", requires_grad=True),))
    for _ in range(3):
        x = torch.randn(4, 6, device="cuda")
        mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        for module, inputs in ((graphed, mine), (other, theirs)):
            module.zero_grad(set_to_none=True)
            module(inputs).square().sum().backward()
        assert torch.equal(mine.grad, theirs.grad)
        for a, b in zip(graphed.parameters(), other.parameters(), strict=True):
            assert torch.equal(a.grad, b.grad)


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match")
def test_F30_several_graphed_callables_share_a_pool_and_may_have_inputs_that_are_not_used(torch: Any) -> None:
    torch.manual_seed(4)
    calls: list[int] = []

    class Counting(torch.nn.Module):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number, self.linear = number, torch.nn.Linear(3, 3)

        def forward(self, x: Any, unused: Any) -> Any:
            calls.append(self.number)
            return self.linear(x).relu()

    models = tuple(Counting(n).cuda() for n in range(2))
    others = copy.deepcopy(models)
    sample = tuple(torch.randn(2, 3, device="cuda", requires_grad=True) for _ in range(2))
    pool = torch.cuda.graph_pool_handle()
    with pytest.raises(RuntimeError, match=r"unused|not have been used"):
        torch.cuda.make_graphed_callables(copy.deepcopy(models[0]), sample)
    torch.cuda.synchronize()
    calls.clear()
    graphed = torch.cuda.make_graphed_callables(
        models, (sample, sample), num_warmup_iters=2, allow_unused_input=True, pool=pool
    )
    assert isinstance(graphed, tuple) and len(graphed) == 2
    assert calls.count(0) == calls.count(1) == 3, "two times to warm up, and once for the capture"
    calls.clear()
    x, unused = torch.randn(2, 3, device="cuda"), torch.randn(2, 3, device="cuda")
    for module, other in zip(graphed, others, strict=True):
        mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        module(mine, unused).sum().backward()
        other(theirs, unused).sum().backward()
        assert torch.equal(mine.grad, theirs.grad)
        assert torch.equal(module.linear.weight.grad, other.linear.weight.grad)
    assert calls == [0, 1], "of the modules without graphs"


def test_F30_a_graph_that_is_dropped_in_its_capture_ends_it(torch: Any) -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        x += torch.rand(4, device="cuda")
        del graph
        gc.collect()
        assert not torch.cuda.is_current_stream_capturing()
        torch.manual_seed(1)
        drawn = torch.rand(4, device="cuda")  # the capture has the generator no more
    torch.cuda.synchronize()
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(4, device="cuda"))
    assert x.tolist() == [0.0] * 4


def test_F30_errors_of_captures_have_the_words_of_cuda(torch: Any) -> None:
    x, graph = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        y = x + 1
        with pytest.raises(torch.AcceleratorError, match="operation not permitted when stream is capturing"):
            torch.cuda.synchronize()
        with pytest.raises(torch.AcceleratorError, match="operation failed due to a previous error during capture"):
            y + 1
        with pytest.raises(torch.AcceleratorError, match="operation failed due to a previous error during capture"):
            graph.capture_end()


def test_F30_external_events_connect_a_graph_with_work_outside_of_it(torch: Any, held: Any) -> None:
    x, side = torch.zeros(64, device="cuda"), torch.cuda.Stream()
    ready, done = torch.cuda.Event(external=True), torch.cuda.Event(external=True)
    first, last = (torch.cuda.Event(enable_timing=True, external=True) for _ in range(2))
    ready.record()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first.record()
        torch.cuda.current_stream().wait_event(ready)
        y = x + 1
        done.record()
        last.record()
    for value in (3.0, 4.0):
        with torch.cuda.stream(side):
            gate = held(side)
            x.fill_(value)
            ready.record()
        graph.replay()
        assert not torch.cuda.current_stream().query()
        gate.open()
        torch.cuda.synchronize()
        assert y.tolist() == [value + 1] * 64
    assert done.query()
    assert first.elapsed_time(last) >= 0


def test_F30_graphs_of_torch_accelerator(torch: Any) -> None:
    if not hasattr(torch.accelerator, "Graph"):
        pytest.skip("torch.accelerator has no graphs before torch 2.14")
    x = torch.zeros(5, device="cuda")
    torch.cuda.synchronize()
    graph = torch.accelerator.Graph()
    with torch.cuda.Stream(), graph:
        x.add_(1)
    for _ in range(3):
        graph.replay()
    assert x.tolist() == [3.0] * 5


def test_F30_streams_of_every_class_know_that_they_are_captured(torch: Any) -> None:
    if not hasattr(torch.Stream, "is_capturing"):
        pytest.skip("torch.Stream has the method since 2.15")
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()

    def seen() -> list[bool]:
        of_torch = torch.Stream(stream_id=side.stream_id, device_index=side.device_index, device_type=side.device_type)
        streams = torch.accelerator.current_stream(), torch.cuda.current_stream(), of_torch, side
        return [stream.is_capturing() for stream in streams]

    assert seen() == [False] * 4
    x = torch.ones(4, device="cuda")
    with torch.cuda.graph(graph):
        x.add_(1)
        assert seen() == [True, True, False, False]
        side.wait_stream(torch.cuda.current_stream())
        assert seen() == [True] * 4
        torch.cuda.current_stream().wait_stream(side)
    assert seen() == [False] * 4


def test_F30_an_optimizer_that_is_not_capturable_refuses_the_capture(torch: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(4, device="cuda"))
    weight.grad = torch.ones_like(weight)
    optimizer = torch.optim.Adam([weight], lr=0.1)
    optimizer.step()
    with (
        pytest.raises(RuntimeError, match=r"Attempting CUDA graph capture of step\(\)"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        weight.grad.mul_(2)
        optimizer.step()
