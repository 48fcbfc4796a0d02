"""Memory of torch.cuda: figures, reuse in the order of streams, pinned memory."""

from __future__ import annotations

import gc
from typing import Any

import halstream as hs
import pytest


def test_figures_follow_what_is_allocated(torch: Any) -> None:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 1 << 20
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + (1 << 20)
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()


def test_M23_memory_is_reserved_in_segments(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import torch
        mib = 1 << 20
        reserved, kept = [], []
        for size in (1, mib, mib, mib + 1, 9 * mib, 10 * mib, 11 * mib):
            kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            reserved.append(torch.cuda.memory_reserved() // mib)
        assert reserved == [2, 2, 4, 24, 24, 34, 46], reserved
        del kept
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_M25_memory_stays_with_the_stream_that_it_was_allocated_on(torch: Any) -> None:
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    x = torch.empty(12345, device="cuda")
    address = x.data_ptr()
    del x
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        assert torch.empty(12345, device="cuda").data_ptr() != address
    assert torch.empty(12345, device="cuda").data_ptr() == address


def test_statistics_have_torchs_keys(torch: Any) -> None:
    torch.ones(1, device="cuda")
    stats = torch.cuda.memory_stats()
    for key in (
        "allocated_bytes.all.current",
        "reserved_bytes.all.peak",
        "num_ooms",
        "num_alloc_retries",
        "active.all.freed",
    ):
        assert key in stats
    assert "allocated_bytes" in torch.cuda.memory_stats_as_nested_dict()
    assert torch.cuda.memory_summary() and isinstance(torch.cuda.memory_snapshot(), list)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def _empty(torch: Any) -> None:
    """Leave nothing of earlier tests in memory, so that what is given out depends on this one only."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def _lend(torch: Any, record: bool = False, wait: bool = False, reuse: bool = True) -> Any:
    """Use a tensor on another stream, drop it, and perhaps use its memory again; return the report."""
    _empty(torch)
    s = torch.cuda.Stream()
    with hs.sanitize(on="collect") as report:
        x = torch.ones(4096, device="cuda")
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = x * 2
        if record:
            x.record_stream(s)
        address = x.data_ptr()
        del x
        if wait:
            torch.cuda.current_stream().wait_stream(s)
        if reuse:
            z = torch.zeros(4096, device="cuda")
            assert record or z.data_ptr() == address
        torch.cuda.synchronize()
    del y
    return report


def test_the_sanitizer_finds_a_missing_record_stream(torch: Any) -> None:
    (found,) = _lend(torch)
    assert (found.first.operation, found.second.operation) == ("aten::mul", "aten::zero_")
    assert found.buffer == "x" and found.fix == "x.record_stream(s)"
    assert "freed and given out again, in the order of the default stream" in found.text
    assert not _lend(torch, record=True).all and not _lend(torch, wait=True).all


def test_a_free_alone_is_no_access(torch: Any) -> None:
    assert not _lend(torch, reuse=False).all


def test_record_stream_of_one_stream_says_nothing_of_another(torch: Any) -> None:
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    with hs.sanitize(on="collect") as report:
        x = torch.ones(4096, device="cuda")
        for s in (a, b):
            s.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(s):
                x.sum()
        x.record_stream(a)
        address = x.data_ptr()
        del x
        a.synchronize()
        b.synchronize()  # here the memory is given out again in any case; to the sanitizer the host has waited
        assert torch.zeros(4096, device="cuda").data_ptr() == address
    assert not report.all


def test_the_other_backend_of_the_allocator_reports_the_free_itself(program: Any) -> None:
    done = program(IN_ORDER, env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync", "HALSTREAM_SANITIZE": "1"})
    assert done.returncode == 66, done.stderr  # something was found
    assert done.stderr.count("unordered access: two") == 1
    assert "2. the memory is given back, in the order of the default stream" in done.stderr
    assert "del x" in done.stderr and "x.record_stream(s)" in done.stderr


IN_ORDER = """
import halstream.torch.cuda_on_host
import torch

assert torch.cuda.get_allocator_backend() == "cudaMallocAsync"
s = torch.cuda.Stream()
for record in (False, True):
    x = torch.ones(4096, device="cuda")
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        x.sum()
    if record:
        x.record_stream(s)
    del x
torch.cuda.synchronize()
"""


def test_pinned_memory(torch: Any) -> None:
    x = torch.arange(4.0).pin_memory()
    assert x.is_pinned() and not torch.ones(2).is_pinned()
    y = x.cuda(non_blocking=True)
    assert y.tolist() == [0, 1, 2, 3]
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.ones(2).cuda(non_blocking=True).tolist() == [1, 1]


def test_out_of_memory_is_torchs_error(torch: Any) -> None:
    _, total = torch.cuda.mem_get_info()
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"(?i)out of memory"):
        torch.empty(2 * total, dtype=torch.uint8, device="cuda")


def test_a_snapshot_shows_the_segments_and_their_blocks(torch: Any) -> None:
    _empty(torch)
    s, other = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(s):
        x, gone = torch.zeros(3000, device="cuda"), torch.zeros(5000, device="cuda")
    lent, gate = torch.zeros(7000, device="cuda"), hs.testing.Gate(hs.Stream.from_handle(other.cuda_stream))
    address, freed, awaited = x.data_ptr(), gone.data_ptr(), lent.data_ptr()
    lent.record_stream(other)
    del gone, lent
    segments = torch.cuda.memory_snapshot()
    gate.open()
    blocks = {block["address"]: (segment, block) for segment in segments for block in segment["blocks"]}
    segment, block = blocks[address]
    assert (block["state"], block["size"], segment["stream"]) == ("active_allocated", 12288, s.cuda_stream)
    assert segment["address"] <= address < segment["address"] + segment["total_size"]
    assert blocks[awaited][1]["state"] == "active_awaiting_free"
    assert (
        next(b for s, b in blocks.values() if b["address"] <= freed < b["address"] + b["size"])["state"] == "inactive"
    )
    for one in segments:
        assert sum(block["size"] for block in one["blocks"]) == one["total_size"]
        assert {"device", "allocated_size", "active_size", "requested_size", "segment_type"} <= one.keys()
    here = [one for one in segments if one["device"] == 0]
    assert sum(one["total_size"] for one in here) == torch.cuda.memory_reserved()
    assert sum(one["allocated_size"] for one in here) == torch.cuda.memory_allocated()
    torch.cuda.synchronize()


def test_peaks_begin_again_and_nested_figures_are_complete(torch: Any) -> None:
    from halstream.torch._redirect.figures import complete

    x = torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
    del x
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() + (4 << 20)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
    assert torch.cuda.max_memory_reserved() == torch.cuda.memory_reserved()
    stats = torch.cuda.memory_stats()
    assert torch.cuda.memory_stats_as_nested_dict().keys() == complete({}).keys()
    assert stats["allocated_bytes.all.allocated"] - stats["allocated_bytes.all.freed"] == torch.cuda.memory_allocated()
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0


REUSED = """
import halstream.torch.cuda_on_host
import halstream as hs, torch

def reload(wait):
    d2h, staging = torch.cuda.Stream(), torch.zeros(256, pin_memory=True)
    activation = torch.full((256,), 3.0, device="cuda")
    d2h.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(d2h):
        staging.copy_(activation, non_blocking=True)
    activation.record_stream(d2h)
    offloaded = d2h.record_event()
    del activation
    reloaded = torch.empty(256, device="cuda")  # the same memory, if the copy has ended by now
    if wait:
        torch.cuda.current_stream().wait_event(offloaded)
    reloaded.copy_(staging, non_blocking=True)
    torch.cuda.synchronize()

for wait in (False, True):
    found = 0
    for _ in range(12):
        torch.cuda.empty_cache()
        with hs.sanitize(on="collect") as report:
            reload(wait)
        found += bool(report.all)
    print(wait, found)
"""


def test_C8_the_verdict_does_not_depend_on_when_memory_is_given_out_again(program: Any) -> None:
    """After Megatron-LM#7398: once the copy had ended, its memory was given out again, and hid the missing wait."""
    done = program(REUSED)
    assert (done.returncode, done.stdout) == (0, "False 12\nTrue 0\n"), done.stderr
