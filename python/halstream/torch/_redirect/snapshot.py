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


def snapshot(module: Any, history: History) -> dict[str, Any]:
    """Return torch's dictionary."""
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
        "segments": [segment for device in devices for segment in _segments(device, history)],
        "device_traces": history.traces(),
        "external_annotations": [],
        "allocator_settings": settings,
    }


def segments(module: Any) -> Iterator[tuple[int, int, int]]:
    """Return device, address and size of each segment."""
    for device in range(module._cuda_getDeviceCount()):
        chunks: list[ChunkRecord] = decode(_native.pool_chunks(device))
        yield from {(device, chunk["segment"]["start"], chunk["segment"]["size"]) for chunk in chunks}


def _segments(device: int, history: History) -> Iterator[dict[str, Any]]:
    chunks: list[ChunkRecord] = decode(_native.pool_chunks(device))
    for (start, size), of in itertools.groupby(chunks, lambda c: (c["segment"]["start"], c["segment"]["size"])):
        members = list(of)
        blocks = [_block(chunk, history) for chunk in members]
        yield {
            "device": device,
            "address": start,
            "total_size": size,
            "allocated_size": sum(b["size"] for b in blocks if b["state"] == "active_allocated"),
            "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
            "requested_size": sum(b["requested_size"] for b in blocks),
            "stream": next((chunk["stream"] for chunk in members if chunk["stream"]), 0),
            "segment_type": "small" if size <= _SMALL else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": blocks,
        }


def _block(chunk: ChunkRecord, history: History) -> dict[str, Any]:
    state = "active_allocated" if chunk["size"] else "active_awaiting_free" if chunk["used"] else "inactive"
    requested, frames = history.allocation(chunk["chunk"]["start"], chunk["size"]) if chunk["size"] else (0, [])
    return {
        "address": chunk["chunk"]["start"],
        "size": chunk["chunk"]["size"],
        "requested_size": requested,
        "state": state,
        "frames": frames,
    }
