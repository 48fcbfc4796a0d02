"""Names of torch.cuda on top of the allocator and the devices: figures, fractions, seeds, ranges."""

from __future__ import annotations

import re
import threading
from typing import Any

import halstream as hs
import pytest
from halstream import torch
from halstream._memory import memory_stats
from halstream.torch import cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend")]


@pytest.fixture
def fraction() -> Any:
    yield cuda.set_per_process_memory_fraction
    for number in range(cuda.device_count()):
        cuda.set_per_process_memory_fraction(1.0, number)


def test_a_part_of_the_memory_for_the_process(fraction: Any) -> None:
    assert cuda.get_per_process_memory_fraction() == 1.0
    fraction(0.5, "cuda:1")
    assert [cuda.get_per_process_memory_fraction(n) for n in range(2)] == [1.0, 0.5]
    fraction(0.0)
    before = memory_stats(0)["out_of_memory"]
    with pytest.raises(torch.OutOfMemoryError) as info:
        cuda.caching_allocator_alloc(1 << 20)
    assert "Allocation on device 0 would exceed allowed memory. (out of memory)" in str(info.value)
    assert "Requested               : 1048576 bytes" in str(info.value)
    assert memory_stats(0)["out_of_memory"] == before + 1
    fraction(1.0)
    cuda.caching_allocator_delete(cuda.caching_allocator_alloc(1 << 20))


def test_wrong_parts_of_the_memory(fraction: Any) -> None:
    for wrong in (1, "0.5", None):
        with pytest.raises(TypeError, match=r"^Invalid type for fraction argument, must be `float`$"):
            fraction(wrong)
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match=rf"^Invalid fraction value: {wrong}. Allowed range: 0~1$"):
            fraction(wrong)
    assert cuda.get_per_process_memory_fraction() == 1.0


def test_properties_of_a_device() -> None:
    first, second = (cuda.get_device_properties(n) for n in range(2))
    names = (
        "name major minor multi_processor_count warp_size total_memory is_integrated is_multi_gpu_board "
        "max_threads_per_multi_processor max_threads_per_block L2_cache_size clock_rate memory_clock_rate "
        "memory_bus_width shared_memory_per_block shared_memory_per_block_optin "
        "shared_memory_per_multiprocessor regs_per_multiprocessor pci_bus_id pci_device_id pci_domain_id"
    )
    for name in names.split():
        assert isinstance(getattr(first, name), str if name == "name" else int)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first.uuid)
    assert first.uuid != second.uuid and first.uuid == cuda.get_device_properties(0).uuid
    text = repr(first)
    assert text.startswith(f"_CudaDeviceProperties(name='{first.name}', major={first.major}, ")
    assert f"total_memory={first.total_memory >> 20}MB" in text and f"uuid={first.uuid}" in text


# -- seeds ------------------------------------------------------------------


def test_seeds_are_kept_by_device() -> None:
    start = cuda.initial_seed()
    cuda.manual_seed_all(7)
    with cuda.device(1):
        cuda.manual_seed(8)
        assert cuda.initial_seed() == 8
    assert cuda.initial_seed() == 7
    cuda.seed_all()
    assert cuda.initial_seed() not in (7, start)
    cuda.seed()
    with cuda.device(1):
        assert cuda.initial_seed() != 8
    with pytest.raises(TypeError):
        cuda.manual_seed("x")  # type: ignore[arg-type]
    with pytest.raises(hs.NotSupportedError, match=r"torch\.cuda\.get_rng_state is not built yet"):
        cuda.get_rng_state()


# -- ranges -----------------------------------------------------------------


def test_ranges_are_free_without_a_trace() -> None:
    nvtx = cuda.nvtx
    assert [nvtx.range_push("a"), nvtx.range_push("b"), nvtx.range_pop(), nvtx.range_pop()] == [0, 1, 1, 0]
    with nvtx.range("{} of {}", 1, 2):
        nvtx.mark("here")
        assert nvtx.range_push("inner") == 1
        nvtx.range_pop()

    @nvtx.range("decorated")
    def work() -> int:
        return nvtx.range_push("x") + nvtx.range_pop()

    assert work() == 2
    number = nvtx.range_start("long")
    thread = threading.Thread(target=nvtx.range_end, args=(number,))
    thread.start()
    thread.join()
    nvtx.range_end(number)


def test_a_forked_child_reports_is_in_bad_fork(child: Any) -> None:
    program = """
        import os, sys, warnings
        from halstream.torch import cuda

        print(cuda._is_in_bad_fork(), flush=True)
        cuda.Stream()
        print(cuda._is_in_bad_fork(), flush=True)
        warnings.simplefilter("ignore")
        pid = os.fork()
        if not pid:
            print(cuda._is_in_bad_fork(), flush=True)
            try:
                cuda._lazy_init()
            except RuntimeError as exc:
                print(exc, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    """
    lines = child(program).stdout.splitlines()
    assert lines[:3] == ["False", "False", "True"]
    assert "'spawn'" in lines[3]


def test_versions_and_what_is_compiled_in() -> None:
    assert torch.__version__ == torch.version.__version__ == "2.15.0"
    assert torch.version.cuda == "12.9" and torch.version.hip is None
    assert (cuda.get_arch_list(), cuda.get_gencode_flags()) == ([], "")
    known = cuda.get_device_capability() >= (8, 0)
    assert cuda.is_bf16_supported() is cuda.is_tf32_supported() is known
    cuda.ipc_collect()
