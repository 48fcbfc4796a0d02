"""Figures of sensors, and the library by which programs find out whether there are devices."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def nvml(torch: Any) -> Any:
    """Return the library, begun."""
    found = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    found.nvmlInit()
    return found


def test_torchs_figures_are_those_of_an_idle_device(torch: Any) -> None:
    cuda = torch.cuda
    for function in (cuda.utilization, cuda.memory_usage):
        assert function() == 0
    assert 0 < cuda.temperature() < 100 and cuda.power_draw() > 0 and cuda.clock_rate(0) > 0
    before = cuda.device_memory_used()
    kept = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    assert cuda.device_memory_used() >= before + kept.nbytes
    assert cuda.list_gpu_processes() == "GPU:0\nno processes are running"
    with pytest.raises(ValueError, match="cuda"):
        cuda.temperature("cpu")


def test_the_library_lists_the_devices(torch: Any, nvml: Any) -> None:
    assert nvml.nvmlDeviceGetCount() == torch.cuda.device_count()
    for i in range(nvml.nvmlDeviceGetCount()):
        handle, known = nvml.nvmlDeviceGetHandleByIndex(i), torch.cuda.get_device_properties(i)
        assert nvml.nvmlDeviceGetName(handle) == known.name
        assert nvml.nvmlDeviceGetUUID(handle) == f"GPU-{known.uuid}"
        assert nvml.nvmlDeviceGetCudaComputeCapability(handle) == (known.major, known.minor)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        assert memory.total == known.total_memory and memory.free + memory.used == memory.total
        assert nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(handle)) == handle


def test_what_the_library_does_not_know_it_says_in_its_own_words(torch: Any, nvml: Any) -> None:
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetHandleByIndex(99)
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlDeviceGetHandleByUUID("GPU-none")
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceGetSerial(nvml.nvmlDeviceGetHandleByIndex(0))


def test_the_library_does_not_start_the_device(program: Any) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    done = program(
        """
        import halstream.torch.cuda_on_host, pynvml, torch
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetMemoryInfo(handle)
        print(torch.cuda.is_initialized())
        """
    )
    assert done.stdout == "False\n", done.stderr
