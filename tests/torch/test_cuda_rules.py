"""What torch's CUDA device does in special cases: errors, conversions, allocator settings, figures."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from conftest import Child


def test_F4_a_kernel_that_fails_is_a_device_side_assert(torch: Any) -> None:
    x = torch.arange(10, device="cuda")
    x[torch.tensor([11], device="cuda")]
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered: aten::index") as error:
        torch.cuda.synchronize()
    assert error.value.error_code == 710


def test_a_device_that_is_not_there_has_no_current_stream(torch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"Device index value 2 is out of index range \[0, 2\)"):
        torch.accelerator.current_stream(torch.accelerator.device_count())


def test_F4_products_of_mixed_types_are_refused_at_the_call(torch: Any) -> None:
    double, half = torch.ones(4, 4, dtype=torch.double, device="cuda"), torch.ones(4, 4, device="cuda").half()
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype"):
        torch.mm(double, half)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(double, half)  # from the cache of shapes, too
    torch.cuda.synchronize()


def test_statistics_of_another_type_are_no_mixture(torch: Any) -> None:
    norm = torch.nn.BatchNorm1d(3).cuda()
    assert norm(torch.randn(4, 3, device="cuda").half()).dtype == torch.float16
    torch.cuda.synchronize()


def test_assert_async_counts_the_values_at_the_call(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        torch._assert_async(torch.tensor([], device="cuda"))
    with pytest.raises(RuntimeError, match="with more than one value is ambiguous"):
        torch._assert_async(torch.tensor([0, 0], device="cuda"))
    torch._assert_async(torch.tensor(1, device="cuda"))
    torch.cuda.synchronize()
    torch._assert_async(torch.tensor(0, device="cuda"))
    with pytest.raises(torch.AcceleratorError, match="_assert_async"):
        torch.cuda.synchronize()


@pytest.mark.parametrize("of", ["type", "layout"])
def test_F6_pinned_memory_is_converted_in_stream_order(torch: Any, held: Callable[[Any], Any], of: str) -> None:
    pinned = torch.zeros(4, 4).pin_memory()
    ones = torch.ones(4, 4, device="cuda")
    target = torch.empty(4, 4, dtype=torch.long if of == "type" else torch.float, device="cuda")
    if of == "layout":
        target = target.t()
    torch.cuda.synchronize()
    gate = held(torch.cuda.current_stream())
    pinned.copy_(ones, non_blocking=True)
    target.copy_(pinned, non_blocking=True)
    assert not torch.cuda.current_stream().query()
    gate.open()
    assert target.sum().item() == 16


def test_F6_a_conversion_into_pinned_memory_does_not_wait(torch: Any, held: Callable[[Any], Any]) -> None:
    x = torch.full((8,), 3, device="cuda")
    pinned = torch.zeros(8).pin_memory()
    torch.cuda.synchronize()
    gate = held(torch.cuda.current_stream())
    pinned.copy_(x, non_blocking=True)
    assert not torch.cuda.current_stream().query()
    gate.open()
    torch.cuda.synchronize()
    assert pinned.tolist() == [3.0] * 8


def test_F6_pageable_memory_may_be_changed_after_a_conversion(torch: Any, held: Callable[[Any], Any]) -> None:
    source, target = torch.ones(4), torch.empty(4, dtype=torch.long, device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.current_stream())
    target.copy_(source, non_blocking=True)
    source.fill_(7)
    gate.open()
    assert target.tolist() == [1] * 4


def test_cudnns_convolutions_are_torchs_own(torch: Any) -> None:
    x, weight = torch.randn(2, 3, 8, 8, device="cuda"), torch.randn(4, 3, 3, 3, device="cuda", requires_grad=True)
    plain = torch.nn.functional.conv2d(x, weight, padding=1)
    y = torch.cudnn_convolution(x, weight, (1, 1), (1, 1), (1, 1), 1, False, True, True)
    assert torch.equal(plain, y)
    back = torch.cudnn_convolution_transpose(y, weight, (1, 1), (0, 0), (1, 1), (1, 1), 1, False, True, True)
    assert torch.equal(back, torch.nn.functional.conv_transpose2d(y, weight, padding=1))
    back.sum().backward()
    assert weight.grad is not None


def test_F16_sizes_are_rounded_as_the_settings_say(torch: Any) -> None:
    def taken() -> int:
        return int(torch.cuda.memory_stats()["active_bytes.all.allocated"])

    n = 5 << 20
    before = taken()
    try:
        torch._C._accelerator_setAllocatorSettings("roundup_power2_divisions:4")
        x = torch.empty(n + 1, dtype=torch.int8, device="cuda")
        assert taken() - before == 6 << 20  # parts of 1 MiB between 4 and 8 MiB
        small = torch.empty(700, dtype=torch.int8, device="cuda")
        assert taken() - before == (6 << 20) + 1024
    finally:
        torch._C._accelerator_setAllocatorSettings("")
    before = taken()
    y = torch.empty(n + 1, dtype=torch.int8, device="cuda")
    assert taken() - before == n + 512
    assert x.numel() == y.numel() and small.numel() == 700


def test_F16_more_than_the_share_of_memory_is_out_of_memory(torch: Any) -> None:
    _, total = torch.cuda.mem_get_info()
    allocated = torch.cuda.memory_allocated()
    torch.cuda.set_per_process_memory_fraction((allocated + (1 << 20)) / total)
    try:
        x = torch.empty(1 << 19, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 2\.00 MiB"):
            torch.empty(1 << 21, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_allocated() == allocated + x.numel()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.empty(1 << 21, dtype=torch.uint8, device="cuda").numel() == 1 << 21


def test_observers_are_called_when_memory_is_not_there(torch: Any) -> None:
    seen: list[tuple[int, ...]] = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *figures: seen.append(figures))
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 50, dtype=torch.int8, device="cuda")
    ((device, wanted, total, free),) = seen
    assert (device, wanted) == (0, 1 << 50)
    assert 0 < free <= total


def test_empty_cache_is_counted(torch: Any) -> None:
    def count() -> int:
        return int(torch.cuda.memory_stats()["num_sync_all_streams"])

    before = count()
    torch.cuda.empty_cache()
    assert count() == before + 1


@pytest.mark.parametrize("recorded", [True, False])
def test_F17_empty_cache_waits_for_the_uses_of_freed_memory(torch: Any, recorded: bool) -> None:
    side = torch.cuda.Stream()
    with hs.sanitize(on="collect") as report:
        x, pinned = torch.ones(1024, device="cuda"), torch.zeros(1024).pin_memory()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            pinned.copy_(x, non_blocking=True)
        if recorded:
            x.record_stream(side)
            del x
        torch.cuda.empty_cache()
        pinned.sum()
        torch.cuda.synchronize()
    assert len(list(report)) == (0 if recorded else 1)


def test_F17_empty_cache_waits_for_nothing_else(torch: Any, held: Callable[[Any], Any]) -> None:
    x = torch.ones(1024, device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.current_stream())
    y = x + 1
    del x
    torch.cuda.empty_cache()  # a wait for the held stream would be a StallError
    assert not torch.cuda.current_stream().query()
    gate.open()
    assert y.sum().item() == 2048


def test_memory_beside_the_cache_is_in_no_figure(torch: Any) -> None:
    stream = torch._C._cuda_getCurrentRawStream(0)

    def counted() -> int:
        before = torch.cuda.memory_stats()["requested_bytes.all.allocated"]
        place = torch._C._cuda_cudaCachingAllocator_raw_alloc(1 << 20, stream)
        after = torch.cuda.memory_stats()["requested_bytes.all.allocated"]
        torch._C._cuda_cudaCachingAllocator_raw_delete(place)
        return int(after - before)

    allocated = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_enable(False)
    try:
        assert not torch._C._cuda_cudaCachingAllocator_is_enabled()
        assert counted() == 0
    finally:
        torch.cuda.caching_allocator_enable(True)
    assert counted() == 1 << 20
    assert torch.cuda.memory_allocated() == allocated


def test_F21_pinned_memory_is_counted_until_it_is_given_back(torch: Any) -> None:
    gc.collect()
    torch.cuda.synchronize()
    torch._C._host_emptyCache()
    torch.cuda.reset_accumulated_host_memory_stats()
    torch.cuda.reset_peak_host_memory_stats()
    before = torch.cuda.host_memory_stats()
    x = torch.ones(10 << 10, pin_memory=True)

    def since(name: str) -> int:
        return int(torch.cuda.host_memory_stats()[name] - before[name])

    for name in ("allocations", "active_requests"):
        assert [since(f"{name}.{figure}") for figure in ("current", "allocated", "freed")] == [1, 1, 0]
    for name in ("allocated_bytes", "active_bytes"):
        assert since(f"{name}.current") == 64 << 10  # powers of two
    assert since("num_host_alloc") == since("host_alloc_time.count") == 1
    del x
    assert since("active_bytes.current") == 0
    assert since("allocated_bytes.current") == 64 << 10  # kept
    torch.accelerator.empty_host_cache()
    assert since("allocated_bytes.current") == 0
    assert since("num_host_free") == since("host_free_time.count") == 1
    torch.cuda.reset_accumulated_host_memory_stats()
    assert torch.cuda.host_memory_stats()["allocations.allocated"] == 0


def test_F21_a_pinned_block_is_in_use_until_its_copy_is_done(torch: Any, held: Callable[[Any], Any]) -> None:
    def in_use() -> int:
        torch._C._host_emptyCache()  # looks at events of blocks that were freed
        return int(torch.cuda.host_memory_stats()["active_requests.current"])

    torch.cuda.synchronize()
    before = in_use()
    pinned, x = torch.ones(4).pin_memory(), torch.empty(4, device="cuda")
    gate = held(torch.cuda.current_stream())
    x.copy_(pinned, non_blocking=True)
    del pinned
    assert in_use() == before + 1
    gate.open()
    torch.cuda.synchronize()
    assert in_use() == before


@pytest.mark.parametrize(("fraction", "wanted"), [("0.5", "0.5"), ("1.1", "per_process_memory_fraction is invalid")])
def test_F16_the_environment_sets_the_share_of_memory(program: Child, fraction: str, wanted: str) -> None:
    source = "import halstream.torch.cuda_on_host, torch; print(torch.cuda.get_per_process_memory_fraction(0))"
    run = program(source, env={"PYTORCH_CUDA_ALLOC_CONF": f"per_process_memory_fraction:{fraction}"})
    assert wanted in run.stdout + run.stderr
    assert (run.returncode == 0) == (wanted == fraction)


def test_a_stream_of_the_cuda_runtime(torch: Any) -> None:
    place = ctypes.c_uint64(0)
    runtime = torch.cuda.cudart()
    with torch.cuda.device(1):
        assert runtime.cudaStreamCreate(ctypes.addressof(place)) == 0
        external = torch.cuda.ExternalStream(place.value)
        assert external.cuda_stream == place.value != 0
        assert external.device.index == 1
        with torch.cuda.stream(external):
            assert torch.ones(3, device="cuda").sum().item() == 3
        assert runtime.cudaStreamDestroy(place.value) == 0
        assert runtime.cudaStreamDestroy(place.value) == 400


def test_properties_are_one_object_with_an_identity(torch: Any) -> None:
    properties = torch.cuda.get_device_properties(0)
    assert properties == torch.cuda.get_device_properties()
    assert len(str(properties.uuid)) == 36
    assert len(properties.uuid.bytes) == 16


def test_F19_wrong_arguments_are_errors_of_the_call(torch: Any) -> None:
    comm = pytest.importorskip("torch.cuda.comm")
    x = torch.randn(4, 4, device="cuda")
    outs = [torch.empty_like(x, device=i) for i in range(2)]
    for call, text in (
        (lambda: comm.broadcast(x, out=[outs[0], x.cpu()]), "be CUDA tensors, but output tensor at index 1"),
        (lambda: comm.broadcast(x, out=[outs[0], outs[1][None]]), "same shape as the source .+ at index 1"),
        (lambda: comm.scatter(x, ()), "at least one device to scatter to"),
        (lambda: comm.scatter(x, (0, 1, 0), (2, 2)), "devices and chunk_sizes to be of same length"),
        (lambda: comm.scatter(x, out=[]), "at least one output tensor to scatter to"),
        (lambda: comm.scatter(x, out=[x.cpu(), outs[1]]), "be CUDA tensors, but output tensor at index 0"),
        (lambda: comm.scatter(x, out=[x[:2, :1], x[:2]]), "Output tensor at index 0 has incorrect shape"),
        (lambda: comm.scatter(x, out=[x[:1].clone(), x[:2].clone()]), r"Total size .+ scatter dim \d+ does not match"),
        (lambda: comm.gather(()), "at least one tensor to gather from"),
        (lambda: comm.gather((x.cpu(), outs[1])), "all input tensors to be CUDA tensors"),
        (lambda: comm.gather((x, outs[1][None])), "the same number of dimensions"),
        (lambda: comm.gather((x, outs[1][:, :1])), "Input tensor at index 1 has invalid shape"),
        (lambda: comm.gather((x, outs[1]), out=x), "Expected out tensor to have shape"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
