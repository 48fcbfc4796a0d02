"""Captures of torch and cupy on streams of halstream, and the other way round, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest

LIMIT = 10.0
WORDS = 8
Library = Callable[[str], Any]

pytestmark = pytest.mark.usefixtures("backend", "gpu")


def read(array: hs.Array, stream: hs.Stream) -> list[int]:
    """Return the elements of an array."""
    target = np.zeros(WORDS, "uint8")
    array.copy_to(target, stream)
    stream.synchronize(timeout=LIMIT)
    return [int(value) for value in target]


def test_G1_torch_captures_what_halstream_enqueues(library: Library) -> None:
    torch = library("torch")
    s = hs.Stream(non_blocking=True)
    theirs, ours = torch.zeros(WORDS, device="cuda"), hs.zeros(WORDS, "uint8")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=torch.cuda.ExternalStream(s.handle), capture_error_mode="relaxed"):
        theirs.add_(1)
        ours.fill(7, s)
    assert read(ours, s) == [0] * WORDS, "a capture runs nothing"
    for times in (1, 2):
        with torch.cuda.stream(torch.cuda.ExternalStream(s.handle)):
            graph.replay()
        assert read(ours, s) == [7] * WORDS
        assert theirs.tolist() == [times] * WORDS


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_G1_what_others_enqueue_runs_at_once_while_halstream_captures(library: Library, name: str) -> None:
    module = library(name)
    s, ours = hs.Stream(non_blocking=True), hs.zeros(WORDS, "uint8")
    if name == "torch":
        entered, theirs = module.cuda.stream(module.cuda.ExternalStream(s.handle)), module.zeros(WORDS, device="cuda")
        module.cuda.synchronize()
    else:
        entered, theirs = module.cuda.Stream.from_external(s), module.zeros(WORDS, dtype="float32")
        module.cuda.Device().synchronize()
    hs.synchronize()
    with hs.capture(s, "relaxed") as graph, entered:
        theirs += 1
        ours.fill(7, s)
    s.synchronize(timeout=LIMIT)
    run = graph.instantiate()
    assert theirs.tolist() == [1] * WORDS
    assert read(ours, s) == [0] * WORDS
    run.launch(s)
    assert read(ours, s) == [7] * WORDS
    assert theirs.tolist() == [1] * WORDS, "the graph has what halstream enqueued"


def test_G1_cupy_captures_what_halstream_enqueues(library: Library) -> None:
    cupy = library("cupy")
    s, ours = hs.Stream(non_blocking=True), hs.zeros(WORDS, "uint8")
    hs.synchronize()
    external = cupy.cuda.Stream.from_external(s)
    external.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
    ours.fill(7, s)
    graph = external.end_capture()
    assert read(ours, s) == [0] * WORDS, "a capture runs nothing"
    graph.launch(external)
    assert read(ours, s) == [7] * WORDS


def test_G1_a_function_of_the_host_has_no_place_in_the_capture_of_another(library: Library) -> None:
    torch = library("torch")
    s, ran = hs.Stream(non_blocking=True), []
    graph, external = torch.cuda.CUDAGraph(), torch.cuda.ExternalStream(s.handle)
    x = torch.zeros(WORDS, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=external, capture_error_mode="relaxed"):
        x.add_(1)
        with pytest.raises(hs.CaptureError):
            s.call(ran.append, 1)
    with torch.cuda.stream(external):
        graph.replay()
    s.synchronize(timeout=LIMIT)
    assert x.tolist() == [1] * WORDS and not ran
