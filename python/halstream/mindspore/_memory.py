"""Memory statistics of mindspore.hal and mindspore.runtime 2.10: the pool of the tensors' memory.

Differences: the host device has a pool, where mindspore's CPU shows zeros; no
block is kept for parameters or freed eagerly.
"""

from __future__ import annotations

from typing import Any

from .._core import _current
from .._core._device import in_use
from .._errors import NotSupportedError
from .._memory import empty_cache as _empty_cache
from .._memory import memory_stats as _stats
from .._memory import reset_memory_peaks as _reset

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
# What the pool takes blocks in multiples of.
_UNIT = 512


def _pool() -> dict[str, int]:
    where = _current.current_device()
    if not in_use:
        return dict.fromkeys(("allocated", "reserved", "allocated_peak", "reserved_peak"), 0)
    return _stats(where)


def memory_stats() -> dict[str, Any]:
    """`mindspore.runtime.memory_stats` of 2.10; one pool, of which all blocks count as one."""
    pool = _pool()
    block = {"block_stream_id": 0, "block_memory_size": pool["reserved"]}
    common: dict[str, Any] = {
        "block_unit_size": _UNIT,
        "block_counts": int(pool["reserved"] > 0),
        "blocks_info": {object(): block} if pool["reserved"] else {},
    }
    return {
        "total_reserved_memory": pool["reserved"],
        "total_allocated_memory": pool["allocated"],
        "total_idle_memory": pool["reserved"] - pool["allocated"],
        "total_eager_free_memory": 0,
        "max_reserved_memory": pool["reserved_peak"],
        "max_allocated_memory": pool["allocated_peak"],
        # Misspelled up to 2.7; the later name comes last.
        "commom_mem_pool_stats": common,
        "persistent_mem_pool_stats": {
            "block_counts": 0,
            "block_unit_size": _UNIT,
            "blocks_info": {},
        },
        "common_mem_pool_stats": common,
    }


def memory_reserved() -> int:
    """`mindspore.runtime.memory_reserved` of 2.10."""
    return _pool()["reserved"]


def max_memory_reserved() -> int:
    """`mindspore.runtime.max_memory_reserved` of 2.10."""
    return _pool()["reserved_peak"]


def memory_allocated() -> int:
    """`mindspore.runtime.memory_allocated` of 2.10."""
    return _pool()["allocated"]


def max_memory_allocated() -> int:
    """`mindspore.runtime.max_memory_allocated` of 2.10."""
    return _pool()["allocated_peak"]


def reset_peak_memory_stats() -> None:
    """`mindspore.runtime.reset_peak_memory_stats` of 2.10: both peaks become what is held."""
    if in_use:
        _reset(_current.current_device())


def reset_max_memory_reserved() -> None:
    """`mindspore.runtime.reset_max_memory_reserved` of 2.10."""
    if in_use:
        _reset(_current.current_device(), allocated=False)


def reset_max_memory_allocated() -> None:
    """`mindspore.runtime.reset_max_memory_allocated` of 2.10."""
    if in_use:
        _reset(_current.current_device(), reserved=False)


def empty_cache() -> None:
    """`mindspore.runtime.empty_cache` of 2.10; gives idle blocks back on every backend."""
    if in_use:
        _empty_cache(_current.current_device())


def memory_summary() -> str:
    """`mindspore.runtime.memory_summary` of 2.10."""
    pool = _pool()
    rows = (
        ("Reserved memory", pool["reserved"]),
        ("Allocated memory", pool["allocated"]),
        ("Idle memory", pool["reserved"] - pool["allocated"]),
        ("Eager free memory", 0),
        ("Max reserved memory", pool["reserved_peak"]),
        ("Max allocated memory", pool["allocated_peak"]),
    )
    return _table(rows)


def _table(rows: tuple[tuple[str, int], ...]) -> str:
    lines = ["=" * 45, f" {'Memory summary':^43} ", "=" * 45, f" {'Metric':<20} | {'Data':<20} "]
    for name, nbytes in rows:
        lines += ["-" * 45, f" {name:<20} | {_size(nbytes):<20} "]
    return "".join(f"|{line}|\n" for line in [*lines, "=" * 45])


def _size(nbytes: int) -> str:
    value = float(nbytes)
    unit = 0
    while value >= 786432 and unit < len(_UNITS) - 1:
        value = value // 1024
        unit += 1
    return f"{int(value):6d} {_UNITS[unit]}"


def memory_replay(file_path: str) -> None:
    """`mindspore.runtime.memory_replay` of 2.10; not supported."""
    raise NotSupportedError(
        "mindspore.runtime.memory_replay: such traces are written on Ascend devices only",
        operation="memory_replay",
    )


def set_memory(
    init_size: str = "2GB",
    increase_size: str = "2GB",
    max_size: str = "1024GB",
    optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:
    """`mindspore.runtime.set_memory` of 2.10: `max_size` is a limit, blocks are taken one by one."""
    sizes = [
        _gigabytes("init_size", init_size, True),
        _gigabytes("increase_size", increase_size, True),
        _gigabytes("max_size", max_size, True),
        _gigabytes("huge_page_reserve_size", huge_page_reserve_size, False),
    ]
    if not isinstance(optimize_level, str):
        raise TypeError("For 'set_memory', the type of 'optimize_level' must be 'str'.")
    if optimize_level not in ("O0", "O1"):
        raise ValueError(f"For 'set_memory', the optimize_level must be O0 or O1, but got {optimize_level}.")
    if _current.memory_limit():
        raise RuntimeError("The 'set_memory' can not be set repeatedly.")
    if sizes[3]:
        raise NotSupportedError("set_memory: huge pages exist on Ascend devices only")
    _current.set_memory_limit(sizes[2])


def _gigabytes(name: str, size: object, positive: bool) -> int:
    if not isinstance(size, str):
        raise TypeError(f"For 'set_memory', the type of '{name}' must be 'str', but got '{type(size).__name__}'.")
    number = size[:-2]
    fits = size.endswith("GB") and number.replace(".", "", 1).isdecimal()
    if not fits or (positive and float(number) == 0):
        raise ValueError(f"For 'set_memory', {name} must be like '10GB', but got {size}.")
    return int(float(number) * 2**30)
