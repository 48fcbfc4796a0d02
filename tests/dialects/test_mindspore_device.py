"""mindspore: targets, device queries, and when the device counts as initialised."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import halstream as hs
import pytest
from halstream import mindspore
from halstream.mindspore import hal

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]

START = """
import re
import halstream.mindspore as ms
from halstream.mindspore import hal

def raises(kind, function, *args, match="", **kwargs):
    try:
        function(*args, **kwargs)
    except kind as exc:
        assert re.search(match, str(exc)), str(exc)
    else:
        raise AssertionError(f"{function} did not raise {kind}")
"""


def fresh(code: str) -> None:
    """Run code in a process in which nothing was initialised."""
    program = START + textwrap.dedent(code)
    env = {**os.environ, "HALSTREAM_BACKEND": "host", "HALSTREAM_HOST_DEVICES": "2"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.row(80)
def test_a_gpu_is_initialized_by_its_first_use_and_the_cpu_is_not() -> None:
    fresh("""
        ms.set_device("GPU")
        assert hal.is_initialized("GPU") is False
        hal.Stream().synchronize()
        assert hal.is_initialized("GPU") is True
        assert hal.is_initialized("CPU") is False
    """)


@pytest.mark.row(82, 91)
def test_a_cpu_is_initialized_by_its_first_use() -> None:
    fresh("""
        assert hal.is_available("CPU") is True
        assert hal.is_initialized("CPU") is False
        hal.Event()
        assert hal.is_initialized("CPU") is False, "an event alone initialised it"
        hal.Stream()
        assert hal.is_initialized("CPU") is True
    """)
    fresh("""
        hal.current_stream()
        assert hal.is_initialized("CPU") is True
    """)


@pytest.mark.row(81, 83)
def test_a_process_on_a_gpu_has_a_cpu_and_no_ascend() -> None:
    fresh("""
        ms.set_device("GPU")
        assert hal.is_available("GPU") is True
        assert hal.is_available("CPU") is True
        assert hal.is_available("Ascend") is False
        assert hal.device_count() > 0
        assert hal.device_count("CPU") == 1
        raises(ValueError, hal.device_count, "Ascend", match="not available")
    """)


@pytest.mark.row(84, 85)
def test_queries_of_a_gpu() -> None:
    fresh("""
        ms.set_device("GPU")
        last = hal.device_count() - 1
        figures = hal.get_device_properties(last)
        for name in ("name", "major", "minor", "is_multi_gpu_board", "is_integrated",
                     "multi_processor_count", "total_memory", "warp_size"):
            assert hasattr(figures, name), name
        assert figures.total_memory > 1 << 20
        pattern = (r"cudaDeviceProp\\(name='.*', major=\\d+, minor=\\d+, is_multi_gpu_board=[01], "
                   r"is_integrated=[01], multi_processor_count=\\d+, total_memory=\\d+MB, "
                   r"warp_size=\\d+\\)")
        assert re.fullmatch(pattern, repr(figures)), figures
        major, minor = hal.get_device_capability(last)
        assert (major, minor) == (figures.major, figures.minor)
        assert isinstance(hal.get_device_name(last), str)
        assert isinstance(hal.get_arch_list(), str)
        assert not hal.get_arch_list("CPU")
        assert hal.get_device_properties(0, "CPU") is None
    """)


@pytest.mark.row(85, 86)
def test_queries_of_an_ascend_device() -> None:
    fresh("""
        ms.set_device("Ascend", 0)
        assert hal.get_arch_list() is None
        assert hal.get_device_capability(0) is None
        assert hal.get_device_properties(0).total_memory == 0
        hal.Stream()
        figures = hal.get_device_properties(0)
        assert figures.total_memory > 0
        pattern = r"AscendDeviceProperties\\(name='.*', total_memory=\\d+MB, free_memory=\\d+MB\\)"
        assert re.fullmatch(pattern, repr(figures)), figures
    """)


@pytest.mark.row(85)
def test_queries_of_a_cpu() -> None:
    if hs.backend() != "host":
        pytest.skip("the target is 'CPU' on the host backend")
    assert hal.get_arch_list() is None
    assert hal.get_device_capability(0) is None
    assert hal.get_device_properties(0) is None
    assert hal.get_device_name(0) == "CPU"
    assert hal.device_count() == hs.device_count()


@pytest.mark.row(87)
def test_a_negative_id_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        hal.get_device_name(-1)


@pytest.mark.row(88)
def test_arguments_of_the_queries() -> None:
    text = "For 'hal.is_available', the argument 'device_target' must be one of ['CPU', 'GPU', 'Ascend'], but got cuda."
    with pytest.raises(ValueError) as info:
        hal.is_available("cuda")
    assert str(info.value) == text
    wrong: list[Any] = [None, 1, "cpu", "gpu"]
    for value in wrong:
        with pytest.raises(ValueError, match="must be one of"):
            hal.is_initialized(value)
    with pytest.raises(TypeError):
        hal.device_count(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be one of"):
        hal.device_count("cuda")
    count = hal.device_count()
    for query in (hal.get_device_name, hal.get_device_properties, hal.get_device_capability):
        with pytest.raises(TypeError):
            query("0")  # type: ignore[operator]
        with pytest.raises(ValueError, match=str(count)):
            query(count)  # type: ignore[operator]
        with pytest.raises(ValueError, match="must be one of"):
            query("0", "cuda")  # type: ignore[operator]
    with pytest.raises(TypeError, match="device_target"):
        hal.is_available()  # type: ignore[call-arg]


@pytest.mark.row(89)
@pytest.mark.parametrize(("args", "target", "number"), [(("GPU",), "GPU", 0), (("Ascend", 2), "Ascend", 2)])
def test_set_device_shows_in_the_context(args: tuple[Any, ...], target: str, number: int) -> None:
    fresh(f"""
        assert ms.get_context("device_target") == "CPU"
        ms.set_device(*{args!r})
        assert ms.get_context("device_target") == {target!r}
        assert ms.get_context("device_id") == {number}
        assert ms.get_current_device() == ({target!r}, {number})
        assert ms.get_current_device().device_target == {target!r}
        assert hal.is_initialized({target!r}) is False
    """)


def test_streams_are_on_the_device_that_was_set() -> None:
    fresh("""
        ms.set_device("Ascend", 1)
        s = hal.Stream()
        assert repr(s) == f"Stream(device_name=Ascend, device_id:1, stream id:{s.id})"
        assert hal.default_stream().device_id == 1
    """)
    fresh("""
        ms.set_device("Ascend", 7)
        raises(RuntimeError, hal.Stream, match="7")
    """)


def test_set_device_is_called_once() -> None:
    fresh("""
        ms.set_device("GPU", 0)
        ms.set_device("GPU")
        raises(RuntimeError, ms.set_device, "GPU", 1, match="already set")
        raises(RuntimeError, ms.set_device, "Ascend", match="already set")
    """)
    fresh("""
        hal.Stream()
        ms.set_device("CPU")
        ms.set_context(device_target="CPU", device_id=0)
        raises(RuntimeError, ms.set_context, device_id=1, match="already initialized")
    """)


def test_set_device_arguments() -> None:
    wrong: list[tuple[type[Exception], tuple[Any, ...]]] = [
        (TypeError, (1,)),
        (TypeError, ("CPU", "0")),
        (ValueError, ("cuda",)),
        (ValueError, (None,)),
        (ValueError, ("CPU", -1)),
    ]
    for kind, args in wrong:
        with pytest.raises(kind):
            mindspore.set_device(*args)


def test_contexts() -> None:
    fresh("""
        ms.set_context(mode=ms.GRAPH_MODE, device_target="GPU", jit_config={"jit_level": "O0"})
        ms.context.set_context(device_id=1)
        assert ms.context.get_context("device_target") == "GPU"
        assert hal.Stream().device_id == 1
        assert (ms.GRAPH_MODE, ms.PYNATIVE_MODE) == (0, 1)
        raises(ValueError, ms.set_context, bogus=1)
        raises(ValueError, ms.set_context, mode=7)
        raises(ValueError, ms.get_context, "bogus")
    """)


def test_device_context() -> None:
    fresh("""
        ms.set_device("Ascend")
        assert ms.device_context.ascend.is_available() is True
        assert ms.device_context.ascend.device_count() == 2
        assert ms.device_context.cpu.device_count() == 1
        assert ms.device_context.gpu.is_available() is False
        raises(RuntimeError, ms.device_context.gpu.device_count, match="not exist")
    """)


def test_the_communication_stream() -> None:
    assert hal.communication_stream() == hal.default_stream()
    fresh("""
        ms.set_device("Ascend", 0)
        c = hal.communication_stream()
        assert repr(c) == "Stream(device_name=Ascend, device_id:0, stream id:1)"
        assert hal.communication_stream() == c
        assert hal.communication_stream() is not c
        assert hal.Stream(stream_id=1) == c
        assert hal.Stream().id == 2
    """)


def test_core_limits_are_refused_with_a_reason() -> None:
    s = hal.Stream()
    for name, args in (
        ("get_stream_limit", (s,)),
        ("set_stream_limit", (s, 1, 1)),
        ("reset_stream_limit", (s,)),
        ("StreamLimitCtx", (s,)),
        ("get_device_limit", (0,)),
        ("set_device_limit", (0, 1, 1)),
    ):
        with pytest.raises(hs.NotSupportedError, match=name):
            getattr(mindspore.runtime, name)(*args)
    with pytest.raises(TypeError, match=r"'get_stream_limit'.*should be Stream"):
        mindspore.runtime.get_stream_limit(1)  # type: ignore[arg-type]
