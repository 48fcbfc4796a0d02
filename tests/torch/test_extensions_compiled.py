"""An extension that nvcc compiles: its launches are operations of torch's streams, and its device is torch's."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream.torch._redirect.nvcc import find_toolkit

pytestmark = pytest.mark.timeout(1200)  # of the first test, which compiles

SOURCE = Path(__file__).with_name("extension.cu")
LINES = Path(__file__).read_text().splitlines()


@pytest.fixture(scope="module")
def extension(redirected: Any) -> Any:
    """The extension. It takes a minute or more to compile, and is kept in halstream's cache."""
    cpp_extension = importlib.import_module("torch.utils.cpp_extension")
    if find_toolkit(redirected, cpp_extension) is None:
        pytest.skip("nvcc is not installed: `pip install nvidia-cuda-nvcc`")
    return cpp_extension.load("halstream_tests_compiled", [str(SOURCE)])


def test_a_kernel_runs_on_the_current_stream(torch: Any, extension: Any) -> None:
    x, side = torch.ones(1000, device="cuda"), torch.cuda.Stream()
    reports = {}
    for waits in (False, True):
        torch.cuda.synchronize()
        with hs.sanitize(on="collect") as report:
            x.fill_(1)
            if waits:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                assert extension.scale_(x, 3.0, 0) is x
            torch.cuda.synchronize()
        assert bool(report.races) is not waits, str(report)
        reports[waits] = str(report)
    assert x.sum().item() == 3000
    line = next(i for i, text in enumerate(LINES, 1) if "extension.scale_(x, 3.0, 0)" in text)
    assert "2. scale reads on stream" in reports[False], reports[False]
    assert f"test_extensions_compiled.py:{line} in " in reports[False]


def test_templates_and_shared_memory(torch: Any, extension: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        x = torch.arange(3000, dtype=dtype, device="cuda").reshape(3, 1000)
        assert extension.sums(x).tolist() == x.sum(1).tolist()


def test_a_constant_is_set(torch: Any, extension: Any) -> None:
    x = torch.ones(4, device="cuda")
    extension.set_offset(5)
    assert extension.scale_(x, 2.0, 0).tolist() == [7] * 4
    extension.set_offset(0)


def test_the_current_device_and_stream_are_those_of_torch(torch: Any, extension: Any) -> None:
    assert extension.facts() == (0, 0, 8)
    side = torch.cuda.Stream(1)
    with torch.cuda.stream(side):
        assert extension.facts() == (1, side.cuda_stream, 8)
    assert extension.scale_(torch.ones(2, device="cuda:1"), 3.0, 0).tolist() == [3, 3]
    assert extension.facts() == (0, 0, 8)


def test_streams_and_events_of_torch_in_cpp(torch: Any, extension: Any) -> None:
    torch.cuda.synchronize()
    with hs.sanitize() as report:
        x = torch.ones(1000, device="cuda")
        assert extension.scale_beside_(x, 2.0).sum().item() == 2000
    assert not report.races


def test_a_stream_of_the_runtime_is_one_of_torch(torch: Any, extension: Any) -> None:
    own = torch.cuda.ExternalStream(extension.new_stream())
    with torch.cuda.stream(own):
        x = extension.scale_(torch.ones(3, device="cuda"), 2.0, 0)
        assert extension.facts()[1] == own.cuda_stream
    own.synchronize()
    assert x.tolist() == [2, 2, 2]


def test_a_wrong_launch_raises_the_error_of_torch(torch: Any, extension: Any) -> None:
    x = torch.ones(1, device="cuda")
    with pytest.raises(torch.AcceleratorError, match="CUDA error: invalid configuration argument"):
        extension.launch_too_many_threads(x)
    assert extension.scale_(x, 2.0, 0).item() == 2  # the error is gone


@pytest.mark.usefixtures("recovers")
def test_an_access_past_the_end_is_an_error_with_the_kernel_and_the_thread(torch: Any, extension: Any) -> None:
    x = torch.ones(128, device="cuda")
    with pytest.raises(torch.AcceleratorError, match="illegal memory access") as raised:
        extension.scale_(x, 3.0, 1)
        torch.cuda.synchronize()
    assert "scale: Invalid __global__ read of size 4 bytes" in str(raised.value)
    assert "by thread (0,0,0) in block (1,0,0)" in str(raised.value)
