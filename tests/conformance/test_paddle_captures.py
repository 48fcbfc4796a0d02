"""Memory that a capture of halstream.paddle allocates."""

from __future__ import annotations

import halstream.paddle as paddle
import pytest
from halstream.paddle import device
from halstream.paddle.device.cuda.graphs import CUDAGraph

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs"), pytest.mark.needs("host")]


@pytest.mark.parametrize("default", [False, True])
def test_J4_what_a_capture_of_paddle_allocates_can_be_used_after_every_replay(default: bool) -> None:
    stream = device.current_stream() if default else device.Stream()
    with device.stream_guard(stream):
        x = paddle.ones([4])
        stream.synchronize()
        graph = CUDAGraph()
        graph.capture_begin()
        y = x + x
        graph.capture_end()
        for _ in range(3):
            graph.replay()
            stream.synchronize()
            assert y.numpy().tolist() == [2] * 4
