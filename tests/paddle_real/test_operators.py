"""Operators in stream order give what the CPU gives, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

#: By name a function of Paddle, of its layers and of one or two arrays of shape (2, 3, 8, 8).
CASES: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda p, x, y: (x + y) * x - y / (x.abs() + 1) + x.pow(2) - 3 * y,
    "broadcasting": lambda p, x, y: x + y[0, 0] * y.mean(axis=[2, 3], keepdim=True),
    "matmul": lambda p, x, y: p.matmul(x, y, transpose_y=True) + p.bmm(x[:, 0], y[:, 1]).unsqueeze(1),
    "activations": lambda p, x, y: sum(
        getattr(p.nn.functional, name)(x)
        for name in (
            "relu", "relu6", "gelu", "sigmoid", "tanh", "silu", "leaky_relu", "elu", "softplus", "hardswish",
            "hardsigmoid", "mish", "hardtanh", "softsign", "log_sigmoid", "swish",
        )
    ),
    "functions": lambda p, x, y: p.exp(x) + p.log(x.abs() + 1) + p.sqrt(x.abs() + 1) + p.rsqrt(x * x + 1)
    + p.sin(x) + p.cos(y) + p.erf(x) + p.log1p(y * y) + p.clip(x, -0.5, 0.5) + p.reciprocal(y * y + 1) + p.square(y),
    "softmax": lambda p, x, y: p.nn.functional.softmax(x) + p.nn.functional.log_softmax(y),
    "reductions": lambda p, x, y: x.sum(1) + x.mean(1) + x.max(1) + y.min(1) + p.logsumexp(x, 1) + p.linalg.norm(y),
    "shapes": lambda p, x, y: p.concat([x, y], 1)[:, 1:5].transpose([0, 2, 3, 1]).reshape([2, -1]).tile([1, 2])
    + p.stack([x, y, x, y], 1).flatten(1)[:, :512],
    "splits": lambda p, x, y: sum(part * (i + 1) for i, part in enumerate(p.split(x, 4, axis=-1))),
    "selection": lambda p, x, y: p.where(x > y, x, y) + p.maximum(x, y) + p.minimum(x, y)
    + x * (x >= 0).astype("float32"),
    "gather": lambda p, x, y: p.gather(x, p.to_tensor([1, 0, 1]), axis=2)
    + p.index_select(y, p.to_tensor([0, 2, 1]), axis=2),
    "pad": lambda p, x, y: p.nn.functional.pad(x, [1, 1, 2, 0]) * 2,
    "conv": lambda p, x, y: p.nn.functional.conv2d(x, y[:, :, :3, :3], padding=1)
    + p.nn.functional.conv2d(x, y[:, :, 3:6, 3:6], padding=1),
    "depthwise": lambda p, x, y: p.nn.functional.conv2d(x, y[:1, :, :3, :3].transpose([1, 0, 2, 3]), groups=3),
    "transposed conv": lambda p, x, y: p.nn.functional.conv2d_transpose(x[:, :2], y[:, :, :3, :3], stride=2),
    "pools": lambda p, x, y: p.nn.functional.max_pool2d(x, 2) + p.nn.functional.avg_pool2d(y, 2)
    + p.nn.functional.adaptive_avg_pool2d(x, 4),
    "batch norm": lambda p, x, y: p.nn.functional.batch_norm(
        x, p.zeros([3]), p.ones([3]), y[0, :, 0, 0], y[0, :, 0, 1], training=True
    ),
    "layer norm": lambda p, x, y: p.nn.functional.layer_norm(x, [8], y[0, 0, 0], y[0, 0, 1]),
    "group norm": lambda p, x, y: p.nn.functional.group_norm(x, 3) + p.nn.functional.instance_norm(y),
    "embedding": lambda p, x, y: p.nn.functional.embedding(p.to_tensor([[1, 5], [0, 1]]), x[0, 0]),
    "losses": lambda p, x, y: p.nn.functional.mse_loss(x, y) + p.nn.functional.smooth_l1_loss(x, y)
    + p.nn.functional.binary_cross_entropy(p.nn.functional.sigmoid(x), p.nn.functional.sigmoid(y))
    + p.nn.functional.binary_cross_entropy_with_logits(x, p.nn.functional.sigmoid(y))
    + p.nn.functional.cross_entropy(x[:, 0].reshape([16, 8]), p.arange(16) % 8)
    + p.nn.functional.kl_div(p.nn.functional.log_softmax(x), p.nn.functional.softmax(y))
    + p.nn.functional.nll_loss(p.nn.functional.log_softmax(x[0, 0]), p.arange(8) % 8),
    "cast": lambda p, x, y: x.astype("float64").astype("float32") + p.nn.functional.one_hot(p.arange(8) % 8, 8),
    "strided": lambda p, x, y: (x.transpose([0, 1, 3, 2]) + y)[:, ::2].contiguous() * 2,
}  # fmt: skip


def outcome(paddle: Any, device: str, case: Callable[..., Any]) -> list[Any]:
    """Return the result of a case and the gradients of what went in."""
    paddle.set_device(device)
    numbers = np.random.default_rng(11)
    inputs = [paddle.to_tensor(numbers.standard_normal((2, 3, 8, 8), dtype="float32")) for _ in range(2)]
    for one in inputs:
        one.stop_gradient = False
    result = case(paddle, *inputs)
    (result * result).sum().backward()
    return [result.numpy(), *(one.grad.numpy() for one in inputs if one.grad is not None)]


@pytest.mark.parametrize("name", CASES)
def test_Y17_operators_give_what_the_cpu_gives(paddle: Any, name: str) -> None:
    want, got = outcome(paddle, "cpu", CASES[name]), outcome(paddle, "custom_cpu", CASES[name])
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_Y17_comparisons_and_indices(paddle: Any) -> None:
    def work() -> list[Any]:
        x = paddle.to_tensor([[3.0, 1.0, 2.0], [5.0, 9.0, 7.0]])
        found = [x.argmax(1), x.argmin(1), x == 1, x != 1, x < 2, x <= 2, x > 2, x >= 2, paddle.isfinite(x)]
        found += [paddle.logical_and(x > 1, x < 9), paddle.logical_not(x > 1), (x > 1).all(), (x > 8).any()]
        found += [paddle.topk(x, 2)[0], paddle.topk(x, 2)[1], paddle.argsort(x), paddle.cumsum(x, 1), paddle.triu(x)]
        return [one.numpy().tolist() for one in found]

    paddle.set_device("cpu")
    want = work()
    paddle.set_device("custom_cpu")
    assert work() == want


@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adam", "AdamW", "Adamax", "Adagrad", "RMSProp", "Adadelta"])
def test_Y17_optimizers_step_as_on_the_cpu(paddle: Any, name: str) -> None:
    def work(device: str) -> Any:
        paddle.set_device(device)
        layer = paddle.nn.Linear(4, 3)
        layer.weight.set_value(np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3))
        layer.bias.set_value(np.zeros(3, "float32"))
        optimizer = getattr(paddle.optimizer, name)(learning_rate=0.05, parameters=layer.parameters())
        x = paddle.to_tensor(np.linspace(0, 2, 20, dtype="float32").reshape(5, 4))
        for _ in range(4):
            (layer(x) ** 2).mean().backward()
            optimizer.step()
            optimizer.clear_grad()
        return layer.weight.numpy()

    np.testing.assert_allclose(work("custom_cpu"), work("cpu"), rtol=0, atol=1e-6)
