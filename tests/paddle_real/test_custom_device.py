"""What Paddle's own tests of custom devices ask of a plug-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


class Numbers:
    """Pictures and labels of a data set, made here."""

    def __init__(self) -> None:
        self.pictures = np.random.default_rng(3).random((96, 1, 28, 28), dtype="float32")

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, at: int) -> tuple[Any, Any]:
        return self.pictures[at], np.array([at % 10], dtype="int64")


@pytest.mark.parametrize("workers", [0, 1])
def test_Y19_batches_of_a_loader_are_on_the_device(paddle: Any, workers: int) -> None:
    loader = paddle.io.DataLoader(Numbers(), batch_size=32, num_workers=workers, shuffle=True)
    seen = 0
    for pictures, labels in loader:
        assert pictures.place.is_custom_place() and labels.place.is_custom_place()
        assert pictures.shape == [32, 1, 28, 28] and labels.shape == [32, 1]
        seen += 1
    assert seen == 3


def test_Y19_a_step_with_a_metric_and_gradients_that_add_up(paddle: Any) -> None:
    weight = paddle.create_parameter([784, 10], "float32")
    step = paddle.optimizer.SGD(learning_rate=0.01, parameters=[weight])
    accuracy = paddle.metric.Accuracy()
    pictures, labels = next(iter(paddle.io.DataLoader(Numbers(), batch_size=64)))
    labels = paddle.cast(labels, "int32")
    predicted = paddle.nn.functional.softmax(paddle.matmul(paddle.reshape(pictures, [-1, 784]), weight))
    accuracy.update(accuracy.compute(predicted, labels))
    assert 0 <= accuracy.accumulate() <= 1
    before = weight.numpy()
    paddle.nn.functional.cross_entropy(predicted, labels).backward(retain_graph=True)
    once = weight.grad.numpy()
    paddle.nn.functional.cross_entropy(predicted, labels).backward()
    np.testing.assert_allclose(weight.grad.numpy(), 2 * once, rtol=1e-5, atol=1e-7)
    step.step()
    step.clear_grad()
    np.testing.assert_allclose(weight.numpy(), before - 0.02 * once, rtol=1e-5, atol=1e-6)
    assert predicted.place.is_custom_place()


def test_Y19_copies_between_all_places(paddle: Any) -> None:
    values = np.random.default_rng(1).random((2, 2), dtype="float32")
    device, host = paddle.CustomPlace("custom_cpu", 0), paddle.CPUPlace()
    at = paddle.to_tensor(values, place=host)
    for place, there in ((device, True), (device, True), (host, False), (device, True), (host, False)):
        at = at._copy_to(place, True)
        assert at.place.is_custom_place() is there and at.place.is_cpu_place() is not there
        np.testing.assert_array_equal(at.numpy(), values)


def test_Y19_several_roots_of_one_backward(paddle: Any) -> None:
    x = paddle.to_tensor(np.eye(2, dtype="float32"), stop_gradient=False)
    y = paddle.to_tensor(np.array([[1, 2], [3, 4]], dtype="float32"))
    paddle.autograd.backward([paddle.matmul(x, y), paddle.matmul(x, y)], [paddle.ones([2, 2]), None])
    assert x.grad.place.is_custom_place()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.ones((2, 2)) @ np.array([[1, 3], [2, 4]]), rtol=1e-6)


def test_Y19_operators_on_unusual_types(paddle: Any) -> None:
    small = paddle.add(paddle.to_tensor([5, 4, 3], "int16"), paddle.to_tensor([1, 2, 3], "int16"))
    assert small.numpy().tolist() == [6, 6, 6]
    values, places = paddle.topk(paddle.to_tensor([[1.0, 4.0, 5.0, 7.0]]), k=paddle.to_tensor([3], dtype="int32"))
    assert values.numpy().tolist() == [[7, 5, 4]] and places.numpy().tolist() == [[3, 2, 1]]


def test_Y19_every_call_of_streams_and_events(paddle: Any) -> None:
    place = paddle.set_device("custom_cpu")
    paddle.device.synchronize("custom_cpu")
    for stream in (paddle.device.Stream(), paddle.device.Stream(place), paddle.device.current_stream(place)):
        for event in (paddle.device.Event(), paddle.device.Event(place)):
            assert stream.query() and event.query()
            stream.wait_event(event)
            stream.record_event(event)
            stream.wait_stream(stream)
            stream.synchronize()
            assert event.query()
            event.synchronize()
            event.record(stream)
            event.synchronize()
    before = paddle.device.set_stream(stream)
    assert before is not None
    paddle.device.set_stream(before)
