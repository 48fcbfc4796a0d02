"""The output of a graph is cloned on one stream while the next replay overwrites it.

Source: sgl-project/sglang-omni#1369, found in review.
Seen: the encoder's graph has one output buffer. It was cloned under a lock of the host, which the next caller could
take, and replay the graph on another stream, while the clone was only enqueued.
Must be found: the clone beside the node of the next replay.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    consumer, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    frames, graph = torch.zeros(256, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        encoded = frames * 2
    clones = []
    for request in range(2):
        frames.fill_(request + 1.0)
        graph.replay()
        consumer.wait_stream(compute)
        with torch.cuda.stream(consumer):
            clones.append(encoded.clone())
        if ordered:
            compute.wait_stream(consumer)
    torch.cuda.synchronize()
    assert [clone.sum().item() for clone in clones] == [512, 1024]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
