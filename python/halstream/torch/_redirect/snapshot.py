"""What `torch.cuda.memory_snapshot` shows: the segments of the devices' pools and their blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ... import _native
from ..._records import ChunkRecord, decode
from .history import History

__all__ = ["segments", "snapshot"]

# Up to this size torch counts a segment as small.
_SMALL = 2 << 20


Pool = tuple[int, int]
#: By device and stream that has the blocks: the id of the private pool, and addresses that it has given to nobody.
_Private = dict[tuple[int, int], tuple[Pool, set[int]]]

#: How torch calls the pool that a device has for everybody, and all pools together.
_SHARED: Pool = (0, 0)


def snapshot(module: Any, history: History, of: tuple[int, int, bool] | None = None) -> dict[str, Any]:
    """Return torch's dictionary.

    Parameters
    ----------
    of : tuple, optional
        The id of the pool whose segments are asked for, (0, 0) for all, and whether events are.
    """
    first, second, traces = of or (*_SHARED, True)
    private: _Private = {(device, owner): (pool, idle) for device, owner, pool, idle in module.private_pools()}
    devices = range(module._cuda_getDeviceCount())
    settings = {
        "PYTORCH_CUDA_ALLOC_CONF": "",
        "max_split_size": -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": False,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
        "roundup_power2_divisions": {},
    }
    return {
        "segments": [
            segment
            for device in devices
            for segment in _segments(device, history, private)
            if (first, second) in (_SHARED, segment["segment_pool_id"])
        ],
        "device_traces": history.traces() if traces else [[] for _ in devices],
        "external_annotations": [],
        "allocator_settings": settings,
    }


def segments(module: Any) -> Iterator[tuple[int, int, int]]:
    """Return device, address and size of each segment."""
    for device in range(module._cuda_getDeviceCount()):
        chunks: list[ChunkRecord] = decode(_native.pool_chunks(device))
        yield from {(device, chunk["segment"]["start"], chunk["segment"]["size"]) for chunk in chunks}


def _segments(device: int, history: History, private: _Private) -> Iterator[dict[str, Any]]:
    chunks: list[ChunkRecord] = decode(_native.pool_chunks(device))
    for (start, size), of in itertools.groupby(chunks, lambda c: (c["segment"]["start"], c["segment"]["size"])):
        members = list(of)
        stream = next((chunk["stream"] for chunk in members if chunk["stream"]), 0)
        pool, idle = private.get((device, stream), (_SHARED, set()))
        blocks = _merged([_block(chunk, history, idle) for chunk in members])
        yield {
            "device": device,
            "address": start,
            "total_size": size,
            "allocated_size": sum(b["size"] for b in blocks if b["state"] == "active_allocated"),
            "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
            "requested_size": sum(b["requested_size"] for b in blocks),
            "stream": stream,
            "segment_type": "small" if size <= _SMALL else "large",
            "segment_pool_id": pool,
            "is_expandable": False,
            "frames": [],
            "blocks": blocks,
        }


def _merged(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join free neighbours, as torch's allocator does: what a private pool can give out again stays apart in ours."""
    joined: list[dict[str, Any]] = []
    for block in blocks:
        if joined and joined[-1]["state"] == block["state"] == "inactive":
            joined[-1]["size"] += block["size"]
        else:
            joined.append(block)
    return joined


def _block(chunk: ChunkRecord, history: History, idle: set[int]) -> dict[str, Any]:
    start = chunk["chunk"]["start"]
    free = start in idle
    lent = chunk["size"] != 0 and not free
    state = "active_allocated" if lent else "active_awaiting_free" if chunk["used"] and not free else "inactive"
    requested, frames = history.allocation(start, chunk["size"]) if lent else (0, [])
    return {
        "address": start,
        "size": chunk["chunk"]["size"],
        "requested_size": requested,
        "state": state,
        "frames": frames,
    }
