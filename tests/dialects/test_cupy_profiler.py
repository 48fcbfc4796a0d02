"""cupyx.profiler: benchmark, time_range, profile."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import nvtx, runtime
from halstream.cupyx import profiler
from halstream.cupyx.profiler import _time

pytestmark = pytest.mark.dialect("cupy")


@pytest.mark.row(92)
@pytest.mark.parametrize("devices", [None, (0,), (0, 1), (1, 0)])
def test_benchmark_counts_and_shapes(backend: str, devices: Any) -> None:
    calls: list[Any] = []

    def work(a: int, *, b: int) -> None:
        calls.append((a, b))
        cuda.get_current_stream().delay(0.001)

    result = profiler.benchmark(work, (1,), {"b": 2}, n_repeat=10, n_warmup=3, devices=devices)
    assert calls == [(1, 2)] * 13
    assert result.name == "work"
    assert result.cpu_times.shape == (10,)
    assert result.gpu_times.shape == (len(devices or (0,)), 10)
    row = 0 if devices is None else devices.index(0)
    assert (result.gpu_times[row] >= 0.0009).all() and (result.gpu_times[row] < 10).all()
    assert (result.cpu_times >= 0).all()


@pytest.mark.row(93)
def test_benchmark_max_duration(backend: str) -> None:
    calls: list[int] = []
    result = profiler.benchmark(partial(calls.append, 1), name="short", n_repeat=1000, n_warmup=0, max_duration=0)
    assert len(calls) == 1 and result.cpu_times.shape == (1,)
    assert result.gpu_times.shape == (1, 1)


@pytest.mark.row(94)
def test_result_text() -> None:
    times = np.array([[5.1e-6, 6.2e-6, 7.9e-6], [1e-3, 1.1e-3, 1.25e-3]])
    result = _time._PerfCaseResult("name", times, (3,))
    cpu = "name                :    CPU:     6.400 us   +/-  1.152 (min:     5.100 / max:     7.900) us"
    assert result.to_str() == cpu
    assert str(result) == repr(result) == result.to_str(show_gpu=True)
    assert str(result) == (f"{cpu}     GPU-3:  1116.667 us   +/- 102.740 (min:  1000.000 / max:  1250.000) us")
    one = _time._PerfCaseResult("longer_than_the_twenty_characters", times[:, :1], (0,))
    assert str(one) == ("longer_than_the_twenty_characters:    CPU:     5.100 us     GPU-0:  1000.000 us")


def test_benchmark_arguments(backend: str) -> None:
    with pytest.raises(AttributeError, match="__name__"):
        profiler.benchmark(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="func"):
        profiler.benchmark(1, name="x")  # type: ignore[arg-type]
    for wrong in (
        {"args": 1},
        {"kwargs": 1},
        {"n_repeat": "x"},
        {"name": 1},
        {"n_warmup": 1.5},
        {"devices": [0]},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            profiler.benchmark(len, **wrong)


class Ranges:
    """Stands for the NVTX library and remembers its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Any] = []
        monkeypatch.setattr(nvtx, "available", True)
        for name in ("RangePush", "RangePushC", "RangePop"):
            monkeypatch.setattr(nvtx, name, self.note(name))

    def note(self, name: str) -> Any:
        return lambda *args: self.calls.append((name, *args))


@pytest.mark.row(95)
def test_time_range(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    ranges = Ranges(monkeypatch)
    with profiler.time_range("copy", color_id=2):
        pass
    with pytest.raises(KeyError), profiler.time_range("copy", argb_color=0xFF00FF, sync=True):
        raise KeyError

    @profiler.time_range()
    def work(a: int) -> int:
        return a + 1

    assert work(1) == 2 and work.__name__ == "work"
    assert ranges.calls == [
        ("RangePush", "copy", 2),
        ("RangePop",),
        ("RangePushC", "copy", 0xFF00FF),
        ("RangePop",),
        ("RangePush", "work", -1),
        ("RangePop",),
    ]
    with pytest.raises(ValueError, match="Only either color_id or argb_color"):
        profiler.time_range("x", 1, 2)
    with pytest.raises(ValueError, match="message argument cannot be None"):
        profiler.time_range().__enter__()


@pytest.mark.row(96)
def test_time_range_without_nvtx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvtx, "available", False)
    with pytest.raises(RuntimeError, match="nvtx is not installed"):
        profiler.time_range("copy")
    with pytest.raises(RuntimeError, match="nvtx is not installed"):

        @profiler.time_range()
        def work() -> None:
            pass


@pytest.mark.row(97)
def test_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(runtime, "profilerStart", lambda: calls.append("start"))
    monkeypatch.setattr(runtime, "profilerStop", lambda: calls.append("stop"))
    with profiler.profile():
        assert calls == ["start"]
    assert calls == ["start", "stop"]
    with pytest.raises(KeyError), profiler.profile():
        raise KeyError
    assert calls == ["start", "stop"] * 2
    with pytest.warns(UserWarning, match="profile"), cuda.profile():
        pass
    assert calls == ["start", "stop"] * 3
