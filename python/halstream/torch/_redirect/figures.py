"""The names of the statistics of torch.cuda.memory_stats, and those that are always 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["complete"]

_POOLS = ("all", "large_pool", "small_pool")
_METRICS = ("current", "peak", "allocated", "freed")
_BY_POOL = (
    "active",
    "active_bytes",
    "allocated_bytes",
    "allocation",
    "inactive_split",
    "inactive_split_bytes",
    "requested_bytes",
    "reserved_bytes",
    "segment",
)
_BY_METRIC = ("oversize_allocations", "oversize_segments")
_COUNTERS = (
    "max_split_size",
    "num_alloc_retries",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
    "num_ooms",
    "num_sync_all_streams",
)


def complete(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return all figures as a nested dictionary: those that are known, and 0 for the others."""
    found: dict[str, Any] = dict.fromkeys(_COUNTERS, 0)
    found.update({name: dict.fromkeys(_METRICS, 0) for name in _BY_METRIC})
    found.update({name: {pool: dict.fromkeys(_METRICS, 0) for pool in _POOLS} for name in _BY_POOL})
    for name, value in known.items():
        if isinstance(value, dict):
            for pool, figures in value.items():
                if isinstance(figures, dict):
                    found[name][pool].update(figures)
                else:
                    found[name][pool] = figures
        else:
            found[name] = value
    return found
