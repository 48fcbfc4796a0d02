"""Tests of the real torch on the host device: `make test-torch` installs it and runs them.

Those in this process share one redirection; what concerns the process itself (exit, fork,
refusals, undoing) runs in a process of its own.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest
from stream_help import own

# Elsewhere torch is not installed, and importing it takes seconds.
collect_ignore_glob = [] if os.environ.get("HALSTREAM_TORCH_TESTS") else ["test_*"]
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns where it is not set

Child = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="session")
def redirected() -> Any:
    """Redirect torch once for all tests of the process; return it."""
    import halstream.torch

    halstream.torch.redirect()
    import torch

    torch.cuda.init()  # before it torch has no figures of memory
    return torch


@pytest.fixture
def torch(redirected: Any) -> Iterator[Any]:
    """Return torch with its default streams current, a seed, and nothing pending after the test.

    A test that leaves another stream current fails: the later ones of the process would work on that.
    """
    redirected.manual_seed(7)
    yield redirected
    redirected.cuda.synchronize()
    left, default = redirected.cuda.current_stream(), redirected.cuda.default_stream()
    redirected.cuda.set_stream(default)
    assert left == default, f"the test left {left} current"


@pytest.fixture
def recovers(torch: Any) -> Iterator[None]:
    """Let the devices work again, which the test loses to an operator, before anything else looks at them."""
    yield
    from halstream import testing

    testing.recover()


@pytest.fixture
def held(torch: Any, hold: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that holds a stream of torch until its gate is opened, at the latest after the test."""
    return lambda stream: hold(own(stream))


@pytest.fixture
def captured(torch: Any) -> Iterator[Callable[..., Any]]:
    """Capture a function's work on a side stream and return the graph and the function's result."""
    made: list[Any] = []

    def capture(work: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
        graph = torch.cuda.CUDAGraph()
        made.append(graph)
        with torch.cuda.graph(graph, **options):
            result = work()
        return graph, result

    yield capture
    torch.cuda.synchronize()
    for graph in made:
        graph.reset()


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    """Free at the end of the module what its errors hold with their tracebacks: other tests count memory."""
    yield
    gc.collect()


@pytest.fixture
def program(child: Child) -> Child:
    """Return `child` with time for torch's import, and with its warnings left alone."""

    def run(source: str, *, env: dict[str, str] | None = None, timeout: float = 120.0) -> CompletedProcess[str]:
        return child(source, env={"PYTHONWARNINGS": "default", **(env or {})}, timeout=timeout)

    return run
