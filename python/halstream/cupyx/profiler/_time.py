"""cupyx.profiler.benchmark (cupy 14.2.0)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy

from ...cupy import cuda
from ...cupy.cuda import runtime


class _PerfCaseResult:
    """What `benchmark` returns; times in seconds."""

    def __init__(self, name: str, ts: Any, devices: tuple[int, ...]) -> None:
        self.name = name
        self._ts = ts
        self._devices = devices

    @property
    def cpu_times(self) -> Any:
        """Time of each call on the host, shape ``(n,)``."""
        return self._ts[0]

    @property
    def gpu_times(self) -> Any:
        """Time of each call on each device, shape ``(len(devices), n)``."""
        return self._ts[1:]

    def to_str(self, show_gpu: bool = False) -> str:
        """Return one line: mean, and with several calls deviation, least and greatest, in µs."""
        rows = [("CPU", self.cpu_times)]
        if show_gpu:
            rows += [(f"GPU-{device}", times) for device, times in zip(self._devices, self.gpu_times, strict=True)]
        return f"{self.name:<20s}:{' '.join(_row(label, times) for label, times in rows)}"

    def __str__(self) -> str:
        return self.to_str(show_gpu=True)

    __repr__ = __str__


def _row(label: str, times: Any) -> str:
    us = times * 1e6
    text = f"    {label}: {us.mean():9.03f} us"
    if us.size > 1:
        text += f"   +/- {us.std():6.03f} (min: {us.min():9.03f} / max: {us.max():9.03f}) us"
    return text


def _check(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"`{name}` should be of {kind.__name__} type")


def benchmark(
    func: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] = {},  # noqa: B006 (the package's signature)
    n_repeat: int = 10000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: tuple[int, ...] | None = None,
) -> _PerfCaseResult:
    """cupyx.profiler.benchmark (14.2.0): time a function on the host and on devices."""
    if name is None:
        name = func.__name__
    if devices is None:
        devices = (runtime.getDevice(),)
    if not callable(func):
        raise ValueError("`func` should be a callable object.")
    _check("args", args, tuple)
    _check("kwargs", kwargs, dict)
    _check("n_repeat", n_repeat, int)
    _check("name", name, str)
    _check("n_warmup", n_warmup, int)
    _check("devices", devices, tuple)
    return _measure(func, args, kwargs, n_repeat, name, n_warmup, max_duration, devices)


def _measure(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    n_repeat: int,
    name: str,
    n_warmup: int,
    max_duration: float,
    devices: tuple[int, ...],
) -> _PerfCaseResult:
    starts, ends = [], []
    for device in devices:
        with cuda.Device(device):
            starts.append(cuda.Event())
            ends.append(cuda.Event())
    for _ in range(n_warmup):
        func(*args, **kwargs)
    _record(devices, ends)
    for end in ends:
        end.synchronize()

    rows: list[list[float]] = [[] for _ in range(1 + len(devices))]
    left = max_duration
    for _ in range(n_repeat):
        _record(devices, starts)
        begin = time.perf_counter()
        func(*args, **kwargs)
        called = time.perf_counter() - begin
        _record(devices, ends)
        for end in ends:
            end.synchronize()
        rows[0].append(called)
        for row, start, end in zip(rows[1:], starts, ends, strict=True):
            # Looked up at each use: programs replace it by a function of their own.
            row.append(cuda.get_elapsed_time(start, end) * 1e-3)
        left -= time.perf_counter() - begin
        if left < 0:
            break
    return _PerfCaseResult(name, numpy.asarray(rows, dtype=numpy.float64), devices)


def _record(devices: tuple[int, ...], events: list[cuda.Event]) -> None:
    for device, event in zip(devices, events, strict=True):
        with cuda.Device(device):
            event.record()
