"""Counts of the pools' segments in `torch.cuda.memory_stats`."""

from __future__ import annotations

from typing import Any

import pytest

MIB = 1 << 20
NAMES = ["segment", "reserved_bytes", "inactive_split", "inactive_split_bytes"]


def _counted(torch: Any, metric: str = "current") -> dict[str, list[int]]:
    stats = torch.cuda.memory_stats(0)
    pools = ["all", "small_pool", "large_pool"]
    return {name: [stats[f"{name}.{pool}.{metric}"] for pool in pools] for name in NAMES}


def _shown(torch: Any) -> dict[str, list[int]]:
    """Count what the snapshot shows in the same way."""
    sums = {name: [0, 0, 0] for name in NAMES}
    for segment in torch.cuda.memory_snapshot():
        if segment["device"] != 0:
            continue
        free = [b["size"] for b in segment["blocks"] if b["state"] == "inactive" and len(segment["blocks"]) > 1]
        for pool in (0, 1 if segment["segment_type"] == "small" else 2):
            for name, more in zip(NAMES, [1, segment["total_size"], len(free), sum(free)], strict=True):
                sums[name][pool] += more
    return sums


def _block(torch: Any, size: int) -> Any:
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def test_F26_segments_and_free_parts_are_counted_as_the_snapshot_shows_them(torch: Any) -> None:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert _counted(torch) == _shown(torch)
    with torch.cuda.stream(torch.cuda.Stream()):
        before = _counted(torch)
        blocks = [_block(torch, size) for size in (MIB, 512, 3 * MIB, 18 * MIB)]
        for _ in range(len(blocks)):
            assert _counted(torch) == _shown(torch)
            del blocks[0]
            torch.cuda.synchronize()
        after = _counted(torch)
        assert after == _shown(torch)
    grown = [now - then for now, then in zip(after["segment"], before["segment"], strict=True)]
    assert grown == [3, 1, 2]  # of 2, 20 and 18 MiB
    assert after["inactive_split"] == before["inactive_split"]  # all are free as a whole
    torch.cuda.empty_cache()
    assert _counted(torch) == _shown(torch)


@pytest.mark.parametrize("metric", ["allocated", "freed"])
def test_F26_totals_of_segments_begin_again(torch: Any, metric: str) -> None:
    torch.cuda.empty_cache()
    with torch.cuda.stream(torch.cuda.Stream()):
        _block(torch, 30 * MIB)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert min(_counted(torch, metric)["segment"][::2]) > 0
    torch.cuda.reset_accumulated_memory_stats()
    assert _counted(torch, metric) == {name: [0, 0, 0] for name in NAMES}
    with torch.cuda.stream(torch.cuda.Stream()):
        _block(torch, 30 * MIB)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert _counted(torch, metric)["segment"] == [1, 0, 1]
    assert _counted(torch, metric)["reserved_bytes"] == [30 * MIB, 0, 30 * MIB]


def test_F26_peaks_of_segments_begin_again(torch: Any) -> None:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    current = _counted(torch)
    assert _counted(torch, "peak") == current
    with torch.cuda.stream(torch.cuda.Stream()):
        _block(torch, 30 * MIB)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert _counted(torch) == current
    peak = _counted(torch, "peak")
    assert peak["segment"] == [current["segment"][0] + 1, current["segment"][1], current["segment"][2] + 1]
