"""Training on the device against training on the CPU: equal numbers, and a prefetch that is right."""

from __future__ import annotations

from typing import Any

import halstream as hs
import numpy as np
import pytest

BATCH, STEPS = 8, 6


def digits(seed: int = 3) -> list[tuple[Any, Any]]:
    """Return batches of generated digits: bright strokes of a row and a column that the label names, with noise."""
    numbers = np.random.default_rng(seed)
    batches = []
    for _ in range(STEPS):
        labels = numbers.integers(0, 10, BATCH)
        images = numbers.random((BATCH, 1, 28, 28), dtype="float32") * 0.3
        for image, label in zip(images, labels, strict=True):
            image[0, 2 + 2 * label, 4:24] += 0.7
            image[0, 4:24, 23 - 2 * label] += 0.7
        batches.append((images, labels.astype("int64")))
    return batches


def train(paddle: Any, device: str, optimizer: str, source: Any) -> tuple[list[float], list[Any]]:
    """Train LeNet and return the losses and the weights."""
    paddle.set_device(device)
    model = paddle.vision.models.LeNet()
    numbers = np.random.default_rng(5)
    for parameter in model.parameters():
        parameter.set_value(numbers.standard_normal(parameter.shape, dtype="float32") * 0.1)
    # The smallest epsilon of Adam would blow up differences of the last bit where gradients are close to 0.
    options = {"epsilon": 1e-3} if optimizer == "Adam" else {}
    step = getattr(paddle.optimizer, optimizer)(0.01, parameters=model.parameters(), **options)
    losses = []
    for images, labels in source(paddle):
        loss = paddle.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        step.step()
        step.clear_grad()
        losses.append(loss)
    return [float(one) for one in losses], [one.numpy() for one in model.parameters()]


def plain(paddle: Any) -> Any:
    """Yield the batches as they are, scaled."""
    for images, labels in digits():
        yield paddle.to_tensor(images) * 2 - 1, paddle.to_tensor(labels)


def prefetched(waits: bool) -> Any:
    """Return a source that copies and scales the next batch on a stream of its own."""

    def source(paddle: Any) -> Any:
        loader, current = paddle.device.Stream(), paddle.device.current_stream()

        def load(batch: Any) -> Any:
            with paddle.device.stream_guard(loader):
                labels = paddle.to_tensor(batch[1])  # it waits for the stream, as to_tensor does
                return paddle.to_tensor(batch[0]) * 2 - 1, labels

        batches = digits()
        loaded = load(batches[0])
        used = []  # until the end: memory that is dropped goes back to the loader's stream
        for following in [*batches[1:], None]:
            if waits:
                current.wait_stream(loader)
            used.append(loaded)
            yield loaded
            loaded = load(following) if following is not None else None

    return source


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_Y17_training_gives_the_numbers_of_the_cpu(paddle: Any, optimizer: str) -> None:
    want, weights = train(paddle, "cpu", optimizer, plain)
    for source in (plain, prefetched(waits=True)):
        losses, got = train(paddle, "custom_cpu", optimizer, source)
        np.testing.assert_allclose(losses, want, rtol=0, atol=1e-6)
        for one, other in zip(got, weights, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_Y2_the_prefetch_is_reported_when_its_wait_is_deleted(paddle: Any) -> None:
    paddle.set_device("custom_cpu")
    with hs.sanitize(on="collect") as report:
        train(paddle, "custom_cpu", "SGD", prefetched(waits=True))
    assert report.all == []
    with hs.sanitize(on="collect") as report:
        train(paddle, "custom_cpu", "SGD", prefetched(waits=False))
    assert report.all
    paddle.device.synchronize()
