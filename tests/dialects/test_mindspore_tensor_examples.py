"""mindspore: programs that make the calls of the documentation's 32 examples.

`DEVICE` lists what a program shows that depends on the device, with the reason
why it is another value here than on the page; everything else is the page's.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]

FIVES = "[[5. 5. 5.]\n [5. 5. 5.]\n [5. 5. 5.]]\n"

EVENT_BETWEEN = """
    x = Tensor(np.full((3, 3), 1.0), ms.float32)
    y = Tensor(np.full((3, 3), 1.0), ms.float32)
    side = ms.hal.Stream()
    with ms.hal.StreamCtx(side):
        total = x + y
        marker = side.record_event()
        product = x * y
    ms.hal.current_stream().wait_event(marker)
    print(total + 3)
"""

PRODUCT = """
    x = Tensor(np.full((1024, 2048), 1), ms.float32)
    y = Tensor(np.full((2048, 4096), 1), ms.float32)
    side = ms.hal.Stream()
    with ms.hal.StreamCtx(side):
        z = ops.matmul(x, y)
"""

FIGURES = """
    x = Tensor(np.full((1, 2), 1.0), ms.float32)
    y = Tensor(np.full((1, 2), 1.0), ms.float32)
    z = ops.add(x, y).asnumpy()
"""

BLOCK = """
    from halstream.mindspore.hal.contiguous_tensors_handle import (
        ContiguousTensorsHandle, combine_tensor_list_contiguous)
    x = Tensor([1, 2, 3], ms.float32)
    y = Tensor([4, 5, 6], ms.float32)
"""

# Number in the list of examples: the program, and what it shows.
PROGRAMS: dict[str, tuple[str, str]] = {
    "1 Stream.record_event": (EVENT_BETWEEN, FIVES),
    "2 Stream.wait_event": (EVENT_BETWEEN, FIVES),
    "3 Stream.wait_stream": (
        """
    first, second = ms.hal.Stream(), ms.hal.Stream()
    x = Tensor(np.full((1, 2), 1.0), ms.float32)
    y = Tensor(np.full((2, 2), 1.0), ms.float32)
    with ms.hal.StreamCtx(first):
        z = ops.matmul(x, y)
    with ms.hal.StreamCtx(second):
        second.wait_stream(first)
        w = ops.matmul(z, y)
    ms.hal.synchronize()
    print(w)
""",
        "[[4. 4.]]\n",
    ),
    "4 Stream.synchronize": (PRODUCT + "    side.synchronize()\n    assert side.query()\n", ""),
    "5 Stream.query": (PRODUCT + "    side.synchronize()\n    print(side.query())\n", "True\n"),
    "6 synchronize": (PRODUCT + "    ms.hal.synchronize()\n    assert side.query()\n", ""),
    "7 set_cur_stream": (
        """
    usual = ms.hal.default_stream()
    assert ms.hal.current_stream() == usual
    side = ms.hal.Stream()
    ms.hal.set_cur_stream(side)
    assert ms.hal.current_stream() == side
    ms.hal.set_cur_stream(usual)
    print(ms.hal.current_stream() == ms.hal.default_stream())
""",
        "True\n",
    ),
    "8 current_stream": ("    assert ms.hal.current_stream() == ms.hal.default_stream()\n", ""),
    "9 default_stream": ("    assert ms.hal.default_stream() == ms.hal.current_stream()\n", ""),
    "10 communication_stream": (
        """
    ms.set_device("Ascend", 0)
    print(repr(ms.hal.communication_stream()))
""",
        "Stream(device_name=Ascend, device_id:0, stream id:1)\n",
    ),
    "11 StreamCtx": (PRODUCT + "    ms.hal.synchronize()\n    assert side.query()\n", ""),
    "12 Event": (
        """
    begin, end = ms.hal.Event(enable_timing=True), ms.hal.Event(enable_timing=True)
    one, two = ms.hal.Stream(), ms.hal.Stream()
    x, y, z = (Tensor(np.full((2, 2), 1.0), ms.float32) for _ in range(3))
    with ms.hal.StreamCtx(one):
        product = ops.matmul(x, y)
        begin.record()
    z += 2
    end.record()
    with ms.hal.StreamCtx(two):
        begin.synchronize()
        end.synchronize()
        total = z + product
    ms.hal.synchronize()
    print(total)
    assert isinstance(begin.elapsed_time(end), float)
""",
        "[[5. 5.]\n [5. 5.]]\n",
    ),
    "13 Event.wait": (
        """
    marker, side = ms.hal.Event(), ms.hal.Stream()
    x, y = (Tensor(np.full((2, 2), 1.0), ms.float32) for _ in range(2))
    with ms.hal.StreamCtx(side):
        z = ops.matmul(x, y)
        marker.record()
    marker.wait()
    w = z + 2
    ms.hal.synchronize()
    print(w)
""",
        "[[4. 4.]\n [4. 4.]]\n",
    ),
    "14 Event.query": (
        PRODUCT
        + """
        marker = side.record_event()
    side.synchronize()
    print(marker.query())
""",
        "True\n",
    ),
    "15 is_initialized": (
        """
    ms.context.set_context(device_target="CPU")
    assert not ms.hal.is_initialized("CPU")
    x = Tensor(np.full((1, 2), 1.0), ms.float32)
    ops.add(x, x).asnumpy()
    print(ms.hal.is_initialized("CPU"))
""",
        "True\n",
    ),
    "16 is_available": (
        "    print(ms.hal.is_available(ms.context.get_context('device_target')))\n",
        "True\n",
    ),
    "17 device_count": ("    print(ms.hal.device_count())\n", "2\n"),
    "18 get_device_capability": ("    print(ms.hal.get_device_capability(0))\n", "None\n"),
    "19 get_device_properties": ("    print(ms.hal.get_device_properties(0))\n", "None\n"),
    "20 get_device_name": ("    print(ms.hal.get_device_name(0))\n", "CPU\n"),
    "21 get_arch_list": ("    print(ms.hal.get_arch_list())\n", "None\n"),
    "22 memory_stats": (
        FIGURES
        + """
    s = ms.hal.memory_stats()
    print(s["total_allocated_memory"], s["max_allocated_memory"], s["total_eager_free_memory"])
    print(s["total_reserved_memory"], s["max_reserved_memory"], s["total_idle_memory"])
""",
        "1024 1536 0\n1536 1536 512\n",
    ),
    "23 memory_reserved": (FIGURES + "    print(ms.hal.memory_reserved())\n", "1536\n"),
    "24 max_memory_reserved": (FIGURES + "    print(ms.hal.max_memory_reserved())\n", "1536\n"),
    "25 reset_peak_memory_stats": (
        FIGURES
        + """
    print(ms.hal.max_memory_reserved(), ms.hal.max_memory_allocated())
    ms.hal.reset_peak_memory_stats()
    print(ms.hal.max_memory_reserved(), ms.hal.max_memory_allocated())
""",
        "1536 1536\n1536 1024\n",
    ),
    "26 memory_allocated": (FIGURES + "    print(ms.hal.memory_allocated())\n", "1024\n"),
    "27 max_memory_allocated": (FIGURES + "    print(ms.hal.max_memory_allocated())\n", "1536\n"),
    "28 reset_max_memory_reserved": (
        FIGURES
        + """
    print(ms.hal.max_memory_reserved())
    ms.hal.reset_max_memory_reserved()
    print(ms.hal.max_memory_reserved())
""",
        "1536\n1536\n",
    ),
    "29 reset_max_memory_allocated": (
        FIGURES
        + """
    print(ms.hal.max_memory_allocated())
    ms.hal.reset_max_memory_allocated()
    print(ms.hal.max_memory_allocated())
""",
        "1536\n1024\n",
    ),
    "30 combine_tensor_list_contiguous": (
        BLOCK + "    print(combine_tensor_list_contiguous([x, y])[0].shape)\n",
        "(1,)\n",
    ),
    "31 ContiguousTensorsHandle": (
        BLOCK
        + """
    handle = ContiguousTensorsHandle([x, y])
    print(handle[0].shape, handle[1:3])
""",
        "(1,) [2. 3.]\n",
    ),
    "32 slice_by_tensor_index": (
        BLOCK + "    print(ContiguousTensorsHandle([x, y]).slice_by_tensor_index(0, 1))\n",
        "[1. 2. 3.]\n",
    ),
}

NO_POOL_UNIT = "the page's device takes 1073741824 bytes at once; this pool takes the blocks asked for"
NO_FIGURE = "the page shows no value; a CPU of mindspore has none either"
DEVICE = {
    17: "2 devices, so that programs for several can be tried (HALSTREAM_HOST_DEVICES)",
    18: NO_FIGURE,
    19: NO_FIGURE,
    20: "named after the target, like mindspore's CPU",
    21: NO_FIGURE,
    22: NO_POOL_UNIT,
    23: NO_POOL_UNIT,
    24: NO_POOL_UNIT,
    25: NO_POOL_UNIT + "; after a reset the page shows 0, the real package what is held, as here",
    28: NO_POOL_UNIT + "; after a reset the page shows 0, the real package what is held, as here",
    29: "after a reset the page shows 0, the real package what is held, as here",
}

#: What programs show on the GPU target instead, as patterns.
ON_GPU = {
    10: r"Stream\(device_name=GPU, device_id:0, stream id:0\)\n",
    17: r"\d+\n",
    18: r"\(\d+, \d+\)\n",
    19: r"cudaDeviceProp\(name='.+', major=\d+, .*, total_memory=\d+MB, warp_size=32\)\n",
    20: r".+\n",
    21: r"\n",
}
GPU = os.environ.get("HALSTREAM_BACKEND") == "cuda"

HEADER = """
    import numpy as np
    import halstream.mindspore as ms
    from halstream.mindspore import Tensor, ops
"""


def number(name: str) -> int:
    return int(name.split()[0])


# These need a process in which the device was not chosen or used yet, and an empty pool.
FRESH = {10, 15, 22, 23, 24, 25, 26, 27, 28, 29}


@pytest.mark.row(106)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_shows_what_the_page_does(name: str, child: Callable[..., Any]) -> None:
    program, expected = PROGRAMS[name]
    pattern = re.escape(expected)
    if GPU:
        program = program.replace('"Ascend"', '"GPU"').replace('"CPU"', '"GPU"')
        pattern = ON_GPU.get(number(name), pattern)
    source = textwrap.dedent(HEADER + program)
    if number(name) in FRESH:
        done = child(source, env={"HALSTREAM_HOST_DEVICES": "2"})
        assert done.returncode == 0, done.stderr
        shown = done.stdout
    else:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(source, name, "exec"), {})
        shown = output.getvalue()
    assert re.fullmatch(pattern, shown), shown


def test_all_32_are_there_and_what_differs_is_explained() -> None:
    assert [number(name) for name in PROGRAMS] == list(range(1, 33))
    assert set(DEVICE) <= set(range(17, 33))


def test_the_same_programs_in_the_newer_module() -> None:
    for name in ("1 Stream.record_event", "3 Stream.wait_stream", "12 Event", "13 Event.wait"):
        program, expected = PROGRAMS[name]
        source = textwrap.dedent(HEADER + program.replace("ms.hal.", "ms.runtime."))
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(source, name, "exec"), {})
        assert shown.getvalue() == expected
