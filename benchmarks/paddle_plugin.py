"""What the plug-in costs in an installed Paddle: `make paddle-programs PADDLE="3.3.1 --bench"`.

Calls of Paddle's interface for devices are compared with a call of Paddle's that reaches no device: the difference is
the plug-in's part, and more. The training loop takes turns with Paddle on the CPU in the same process.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

importlib.import_module("halstream.paddle.plugin")
paddle: Any = importlib.import_module("paddle")


def microseconds(call: Callable[[], object], settle: Callable[[], object], count: int = 2000, rounds: int = 7) -> float:
    """Return the time of a call, the median of some rounds."""
    found = []
    for _ in range(rounds):
        settle()
        began = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - began) / count * 1e6)
    settle()
    return statistics.median(found)


def seconds_of_training(device: str, steps: int = 20) -> float:
    """Return how long some steps of LeNet take."""
    paddle.set_device(device)
    model = paddle.vision.models.LeNet()
    step = paddle.optimizer.SGD(0.01, parameters=model.parameters())
    images = paddle.to_tensor(np.random.default_rng(1).random((64, 1, 28, 28), dtype="float32"))
    labels = paddle.to_tensor(np.arange(64) % 10)
    began = 0.0
    for number in range(steps + 3):
        if number == 3:
            began = time.perf_counter()
        loss = paddle.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        step.step()
        step.clear_grad()
    float(loss)
    return time.perf_counter() - began


def main() -> None:
    paddle.set_device("custom_cpu")
    stream, other, event = paddle.device.Stream(), paddle.device.Stream(), paddle.device.Event()
    base, second, marker = stream.stream_base, other.stream_base, event.event_base
    settle = paddle.device.synchronize
    floor = microseconds(lambda: base.raw_stream, settle)
    print(f"paddle {paddle.__version__}: a call of Paddle's that reaches no device {floor:.2f} us")
    for name, call in (
        ("record", lambda: marker.record(base)),
        ("query of an event", marker.query),
        ("query of a stream", base.query),
        ("wait for an event", lambda: second.wait_event(marker)),
    ):
        taken = microseconds(call, settle)
        print(f"{name:<20} {taken:6.2f} us, above that call {taken - floor:6.2f} us")
    x = paddle.ones([16])
    settle()
    taken = microseconds(lambda: x + x, settle, 500)
    paddle.set_device("cpu")
    y = paddle.ones([16])
    plain = microseconds(lambda: y + y, lambda: None, 500)
    print(f"add of 16 numbers    {taken:6.2f} us, on the CPU {plain:6.2f} us")
    pairs = [(seconds_of_training("cpu"), seconds_of_training("custom_cpu")) for _ in range(5)]
    ratio = statistics.median(ours / cpu for cpu, ours in pairs)
    cpu, ours = (min(times) for times in zip(*pairs, strict=True))
    print(f"20 steps of LeNet    {ours:6.2f} s, on the CPU {cpu:6.2f} s, {ratio:.2f} times")


if __name__ == "__main__":
    main()
