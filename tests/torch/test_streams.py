"""Streams and events under torch.cuda's own names."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import halstream as hs
import pytest
from conftest import Child
from halstream.testing import Gate

Hold = Callable[[Any], Gate]


def test_streams_are_torchs_classes(torch: Any) -> None:
    s = torch.cuda.Stream()
    assert isinstance(s, torch.cuda.Stream) and isinstance(s, torch.Stream)
    assert s.device == torch.device("cuda", 0) and s.cuda_stream != 0
    assert repr(s) == f"<torch.cuda.Stream device=cuda:0 cuda_stream={s.cuda_stream:#x}>"
    assert torch.cuda.default_stream().cuda_stream == 0
    assert torch.cuda.Stream.priority_range()[0] == 0


def test_streams_compare_and_hash_by_what_they_are(torch: Any) -> None:
    s, other = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(s):
        assert torch.cuda.current_stream() == s and hash(torch.cuda.current_stream()) == hash(s)
        assert torch.cuda.current_stream() != other
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert not s == None and s != 3  # noqa: E711, SIM201 (torch 2.13 answers `s != None` with False)
    same = torch.cuda.Stream(stream_id=s.stream_id, device_index=s.device_index, device_type=s.device_type)
    assert same == s


def test_a_stream_cannot_be_pickled(torch: Any) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(torch.cuda.Stream())


def test_the_pool_has_32_streams(torch: Any) -> None:
    streams = [torch.cuda.Stream() for _ in range(33)]
    assert streams[32] == streams[0] and len(set(streams)) == 32


def test_an_external_stream_is_the_stream_of_its_handle(torch: Any) -> None:
    s = torch.cuda.Stream()
    assert torch.cuda.ExternalStream(s.cuda_stream).cuda_stream == s.cuda_stream
    assert torch.cuda.get_stream_from_external(s.cuda_stream).cuda_stream == s.cuda_stream


def test_the_current_stream_belongs_to_the_thread(torch: Any) -> None:
    found = []
    with torch.cuda.stream(torch.cuda.Stream()):
        thread = threading.Thread(target=lambda: found.append(torch.cuda.current_stream()))
        thread.start()
        thread.join(10)
    assert found == [torch.cuda.default_stream()]


def test_set_stream_and_torch_accelerator(torch: Any) -> None:
    s = torch.cuda.Stream()
    torch.cuda.set_stream(s)
    try:
        assert torch.cuda.current_stream() == s
        assert torch.accelerator.current_accelerator().type == "cuda" and torch.accelerator.is_available()
        assert torch.accelerator.current_stream().stream_id == s.stream_id
    finally:
        torch.cuda.set_stream(torch.cuda.default_stream())
    assert torch.accelerator.current_device_index() == 0
    assert torch.accelerator.device_count() == torch.cuda.device_count()


def test_an_event_is_reached_in_the_order_of_its_stream(torch: Any, held: Hold) -> None:
    s, e = torch.cuda.Stream(), torch.cuda.Event()
    assert e.query() and e.device is None and repr(e) == "<torch.cuda.Event uninitialized>"
    gate = held(s)
    e.record(s)
    assert not e.query() and not s.query() and e.device == torch.device("cuda", 0)
    gate.open()
    e.synchronize()
    assert e.query() and isinstance(e, torch.Event)


def test_a_stream_waits_for_an_event_of_another(torch: Any, held: Hold) -> None:
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    gate = held(a)
    with torch.cuda.stream(a):
        x = torch.ones(4, device="cuda")
        done = a.record_event()
    b.wait_event(done)
    with torch.cuda.stream(b):
        y = x + 1
    assert not b.query()
    gate.open()
    b.synchronize()
    assert y.tolist() == [2, 2, 2, 2] and done.query()


def test_the_time_between_two_events(torch: Any) -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.cuda._sleep(50_000_000)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 49
    with pytest.raises(ValueError, match="enable_timing=True"):
        torch.cuda.Event().elapsed_time(end)
    with pytest.raises(RuntimeError, match=r"expected other to be a torch\.cuda\.Event object"):
        start.elapsed_time(torch.Event("cuda", enable_timing=True))


def test_generic_streams_and_events(torch: Any) -> None:
    s, e = torch.Stream("cuda"), torch.Event("cuda")
    with s:
        assert torch.cuda.current_stream().stream_id == s.stream_id
        x = torch.ones(2, device="cuda")
        e.record()
    torch.cuda.current_stream().wait_event(e)
    assert (x * 3).tolist() == [3, 3]


def test_devices(torch: Any) -> None:
    count = torch.cuda.device_count()
    assert count >= 2 and torch.cuda.is_available() and torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        x = torch.ones(2, device="cuda")
    assert x.device == torch.device("cuda", 1) and torch.cuda.current_device() == 0
    with torch.cuda.device_of(x):
        assert torch.cuda.current_device() == 1
    assert x.to("cuda:0").tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(count)


def test_properties_of_a_device(torch: Any) -> None:
    found = torch.cuda.get_device_properties(0)
    assert found.total_memory > 0 and found.multi_processor_count > 0 and "cuda" not in found.name.lower()
    assert torch.cuda.get_device_capability() == (found.major, found.minor) == (8, 0)
    assert torch.cuda.get_device_name() == found.name and torch.cuda.is_bf16_supported()
    assert torch.cuda.get_arch_list() == ["sm_80"]
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_properties(99)


def test_flags_of_backends_can_be_set(torch: Any) -> None:
    assert torch.backends.cuda.is_built()
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = not before
    torch.backends.cuda.matmul.allow_tf32 = before
    benchmark = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark = benchmark


def test_ranges_of_nvtx(torch: Any) -> None:
    assert torch.cuda.nvtx.range_push("outer") == 0
    with torch.cuda.nvtx.range("inner"):
        torch.cuda.nvtx.mark("here")
    assert torch.cuda.nvtx.range_pop() == 0


def test_what_there_is_not_is_refused_by_name(torch: Any) -> None:
    from torch.utils import cpp_extension

    with pytest.raises(NotImplementedError, match="use_mem_pool works without one"):
        torch.cuda.memory.CUDAPluggableAllocator("allocate.so", "allocate", "free")
    with pytest.raises(NotImplementedError, match="MemPool takes no allocator"):
        torch.cuda.MemPool(object())
    with pytest.raises(NotImplementedError, match="cuBLAS"):
        torch.cuda.current_blas_handle()
    with pytest.raises(NotImplementedError, match="register_kernel"):
        cpp_extension.load_inline("x", "", cuda_sources="__global__ void f() {}").f()


def test_halstreams_own_streams_are_the_same_streams(torch: Any) -> None:
    s = torch.cuda.Stream()
    own = hs.Stream.from_handle(s.cuda_stream)
    with torch.cuda.stream(s):
        x = torch.ones(2, device="cuda")
    seen: list[int] = []
    own.call(seen.append, 1)
    own.synchronize()
    assert seen == [1] and s.query() and x.tolist() == [1, 1]


def test_functions_that_are_registered_for_traces_are_called(program: Child) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host, torch
        from torch.cuda import _gpu_trace

        seen = []
        for name in dir(_gpu_trace):
            if name.startswith("register_callback_for_"):
                what = name.removeprefix("register_callback_for_")
                getattr(_gpu_trace, name)(lambda *given, what=what: seen.append((what, *given)))
        torch.cuda.init()
        torch._C._activate_gpu_trace()
        stream, event = torch.cuda.Stream(), torch.cuda.Event()
        event.record(stream)
        event.wait()
        event.synchronize()
        x = torch.empty(8, device="cuda")
        address = x.data_ptr()
        del x
        stream.synchronize()
        torch.cuda.synchronize()
        handle, number = stream.cuda_stream, event.cuda_event
        del event
        expected = [
            ("event_creation", number), ("event_record", number, handle), ("event_wait", number, 0),
            ("event_synchronization", number), ("memory_allocation", address), ("memory_deallocation", address),
            ("stream_synchronization", handle), ("device_synchronization",), ("event_deletion", number),
        ]
        assert ("stream_creation", handle) in seen, seen
        seen = [one for one in seen if one[0] != "stream_creation"]
        assert seen == expected, seen

        seen.clear()
        try:
            torch.ones(3, device="cuda") + torch.ones(3)
        except RuntimeError as error:  # while it is raised the first tensor is freed
            assert "same device" in str(error), error
        assert [one[0] for one in seen] == ["memory_allocation", "memory_deallocation"], seen
        """
    )
    assert done.returncode == 0, done.stderr


def test_functions_that_are_registered_for_traces_hear_of_waits_inside_operators(program: Child) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host, torch
        from torch.cuda import _gpu_trace

        seen = []
        _gpu_trace.register_callback_for_stream_synchronization(seen.append)
        torch.cuda.init()
        torch._C._activate_gpu_trace()
        stream, host = torch.cuda.Stream(), torch.ones(4)
        x, pinned = torch.ones(4, device="cuda"), host.pin_memory()
        calls = [x.nonzero, x[0].item, x.cpu, lambda: x.copy_(host), lambda: x.copy_(pinned, non_blocking=True), x.exp]
        for current, handle in ((torch.cuda.default_stream(), 0), (stream, stream.cuda_stream)):
            with torch.cuda.stream(current):
                for i, call in enumerate(calls):
                    seen.clear()
                    call()
                    assert seen == [handle] * (i < 4), (i, seen)
        """
    )
    assert done.returncode == 0, done.stderr


def _green_contexts(torch: Any) -> Any:
    if not hasattr(torch.cuda, "green_contexts"):
        pytest.skip("torch has green contexts in Python from 2.15 on")
    return torch.cuda.green_contexts


def test_a_stream_of_a_green_context_is_in_no_order_with_the_default_stream(torch: Any, held: Any) -> None:
    context = _green_contexts(torch).GreenContext(num_sms=2)
    side = context.Stream()
    gate = held(torch.cuda.default_stream())
    with torch.cuda.stream(side):
        x = torch.ones(2, device="cuda") + 1
    side.synchronize()  # while the default stream is held
    assert not torch.cuda.default_stream().query()
    gate.open()
    assert x.tolist() == [2.0, 2.0]
    assert (context.device_id, context.sm_count) == (0, 2)


def test_a_missing_wait_for_a_stream_of_a_green_context_is_reported(torch: Any) -> None:
    context = _green_contexts(torch).GreenContext(workqueue_scope="balanced")
    side = context.Stream()
    x = torch.ones(2, device="cuda")
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            x.add_(1)
        x.mul_(2)
        torch.cuda.synchronize()
    assert report.races


@pytest.mark.filterwarnings("ignore:.*set_context.*:FutureWarning")
def test_processors_of_green_contexts_are_those_of_the_device(torch: Any) -> None:
    module = _green_contexts(torch)
    everything = module.SMPartition.from_device(0)
    assert everything.sm_count == torch.cuda.get_device_properties(0).multi_processor_count
    (part,), rest = everything.split(num_sms=2)
    assert part.sm_count + (rest.sm_count if rest is not None else 0) == everything.sm_count
    with pytest.raises(RuntimeError, match="Invalid number of SMs requested"):
        module.GreenContext(num_sms=everything.sm_count + 1)
    with pytest.raises(RuntimeError, match="processors left"):
        everything.split(num_sms=everything.sm_count + 2)
    context = module.GreenContext(sm_partition=part)
    context.set_context()
    x = torch.ones(2, device="cuda")
    context.pop_context()
    assert x.tolist() == [1.0, 1.0]
    assert module.get_num_locality_domains() == 1


@pytest.mark.filterwarnings("ignore:.*set_context.*:FutureWarning")
def test_each_thread_has_its_current_green_context(torch: Any) -> None:
    first, second = (_green_contexts(torch).GreenContext(num_sms=2) for _ in range(2))
    first.set_context()
    with ThreadPoolExecutor(1) as executor:
        executor.submit(second.set_context).result()
        first.pop_context()  # asks whether it is the current one
        executor.submit(second.pop_context).result()
