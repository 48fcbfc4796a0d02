"""The same programs print the same with the real cuda.core on libcuda.so.1 and with halstream.cuda.core.

pip install --no-deps --target FOLDER cuda-core==1.2.2 cuda-bindings cuda-pathfinder
PYTHONPATH=FOLDER python -m pytest tests/libcuda/test_beside_cuda_core.py
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LIMIT = 100.0


def installed() -> bool:
    try:
        return importlib.util.find_spec("cuda.core") is not None
    except ModuleNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not installed(), reason="cuda.core is not installed; the first lines say how to")

START = """
import warnings
import numpy as np
from PACKAGE import core

warnings.simplefilter("ignore")


def tell(expression, **names):
    '''Print what an expression gives, or how it fails.'''
    try:
        said = f"-> {eval(expression, {**globals(), **names})}"
    except Exception as exc:
        kinds = (one for one in type(exc).__mro__ if one.__name__ == "CUDAError" or one.__module__ == "builtins")
        text = str(exc)  # behind the driver's name each has words of its own
        said = f"!! {next(kinds).__name__}: {text.partition(':')[0] if text.startswith('CUDA_') else text}"
    print(expression, said)


PTX = b'''
.version 7.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 to, .param .u32 by)
{
    .reg .u64 %to;
    .reg .u32 %x, %by;
    ld.param.u64 %to, [to];
    ld.param.u32 %by, [by];
    ld.global.u32 %x, [%to];
    add.u32 %x, %x, %by;
    st.global.u32 [%to], %x;
    ret;
}
'''


def numbers(*values):
    buffer = core.LegacyPinnedMemoryResource().allocate(4 * len(values))
    view = np.from_dlpack(buffer).view(np.uint32)
    view[:] = values
    return buffer, view


device = core.Device()
"""

PROGRAMS = {
    "devices": """
        for text in (
            "device.create_stream()", "device.default_stream", "device.sync()", "core.LEGACY_DEFAULT_STREAM.sync()",
            "core.Device(9)", "core.Device(-1)", "core.Device('0')", "int(device)", "device == 0", "device.arch",
            "device.compute_capability", "device.set_current()", "device.set_current(5)",
            "len(core.Device.get_all_devices())", "device.can_access_peer(0)", "core.Device() is device",
        ):
            tell(text)
        core.Device(1).set_current()
        tell("core.LEGACY_DEFAULT_STREAM.device.device_id, core.Device().device_id")
        tell("device.create_stream().device.device_id")
        names = ("warp_size", "max_threads_per_block", "max_shared_memory_per_block", "compute_capability_major",
                 "unified_addressing", "max_grid_dim_x", "memory_pools_supported", "tcc_driver")
        print([getattr(device.properties, name) for name in names])
        """,
    "streams": """
        device.set_current()
        s, t = device.create_stream(), device.create_stream(options={"nonblocking": False, "priority": -2})
        for text in (
            "core.Stream()", "s.is_nonblocking, s.priority, t.is_nonblocking, t.priority", "s == s, s == t, s == 3",
            "core.Stream.from_handle(int(s.handle)) == s", "hash(s) == hash(device.create_stream(s))", "s.wait(5)",
            "s.wait('x')", "s.wait(t)", "s.wait(t.record())", "s.sync()",
            "device.create_stream(options={'priority': 1})", "device.create_stream(options=5)",
            "device.create_stream(5)", "core.Stream.from_handle('a')", "core.Stream.from_handle(-1)",
            "core.Stream.from_handle(12345)", "int(core.LEGACY_DEFAULT_STREAM.handle)",
            "int(core.PER_THREAD_DEFAULT_STREAM.handle)", "device.default_stream == core.LEGACY_DEFAULT_STREAM",
            "s.device is device", "s.close()", "s.is_closed", "s.sync()", "s.record()", "s.wait(t)", "t.wait(s)",
            "int(s.handle)", "s.close()",
        ):
            tell(text, s=s, t=t)
        """,
    "events": """
        device.set_current()
        s, timed = device.create_stream(), core.EventOptions(timing_enabled=True)
        e = device.create_event(timed)
        for text in (
            "core.Event()", "e.is_done, e.is_timing_enabled, e.is_blocking_sync, e.is_ipc_enabled", "e - e",
            "s.record(e) is e", "s.sync()", "e - e", "e == e, e == 3", "e - 3", "s.record(5)", "e.device is device",
            "s.record() - e", "device.create_event({'ipc_enabled': True})", "core.EventOptions(timing_enabled=1)",
            "type(s.record(options=timed) - e)", "e.close()", "e.is_closed", "e.is_done", "e.sync()", "s.record(e)",
            "s.wait(e)", "int(e.handle)",
        ):
            tell(text, s=s, e=e, timed=timed)
            s.sync()
        """,
    "memory": """
        device.set_current()
        s = device.create_stream()
        source, values = numbers(1, 2, 3)
        target, found = numbers(0, 0, 0)
        b, six = device.allocate(12, stream=s), device.allocate(6, stream=s)
        b.copy_from(source, stream=s)
        b.copy_to(target, stream=s)
        s.sync()
        print(found.tolist())
        b.fill(np.uint32(7), stream=s)
        b.copy_to(stream=s).copy_to(target, stream=s)
        s.sync()
        print(found.tolist())
        for text in (
            "b.size, b.device_id, b.is_device_accessible, b.is_host_accessible, b.is_managed, b.is_mapped, b.owner",
            "source.is_device_accessible, source.is_host_accessible", "source.device_id", "core.Buffer()",
            "b.fill(256, stream=s)", "b.fill(b'123', stream=s)", "six.fill(b'1234', stream=s)",
            "b.copy_to(six, stream=s)", "b.fill(1, stream=None)", "b.fill(1, stream=5)",
            "device.allocate(-1, stream=s)", "device.allocate('a', stream=s)", "device.allocate(0, stream=s)",
            "device.allocate(1 << 60, stream=s)", "core.MemoryResource().allocate(4, stream=s)",
            "core.Buffer.from_handle(int(b.handle), 4).device_id",
            "core.Buffer.from_handle(4096, 4, mr=device.memory_resource, owner=s)",
            "core.GraphMemoryResource(device) is core.GraphMemoryResource(0)",
            "core.GraphMemoryResource(device).allocate(4, stream=s)", "core.DeviceMemoryResource(9)",
            "core.DeviceMemoryResource(0, 5)", "b.close(5)", "b.close(s)", "b.is_closed", "int(b.handle), b.size",
            "b.fill(1, stream=s)", "b.copy_to(stream=s)", "b.close()", "b.device_id",
        ):
            tell(text, s=s, b=b, six=six, source=source)
        """,
    "kernels": """
        device.set_current()
        s, one = device.create_stream(), core.LaunchConfig(grid=1, block=1)
        buffer, found = numbers(1)
        code = core.ObjectCode.from_ptx(PTX, name="mine")
        add = code.get_kernel("add")
        core.launch(s, one, add, buffer, np.uint32(2))
        core.launch(s, one, add, int(buffer.handle), 3)
        core.launch(s, one, core.Program(PTX.decode(), "ptx").compile("cubin").get_kernel(b"add"), buffer, 4)
        s.sync()
        print(found.tolist())
        for text in (
            "core.launch(None, one, add)", "core.launch(s, None, add)", "core.launch(s, one, None)",
            "core.launch(5, one, add)", "core.launch(s, one, add)", "core.launch(s, one, add, 'a', 1)",
            "core.launch(s, one, add, None, 1)", "core.launch(s, one, add, 1 << 70, 1)",
            "core.launch(s, core.LaunchConfig(grid=1, block=2048), add, buffer, 1)", "core.LaunchConfig()",
            "core.LaunchConfig(grid=0, block=1)", "core.LaunchConfig(grid=(1, 2, 3, 4), block=1)",
            "core.LaunchConfig(grid=[1], block=1)", "core.LaunchConfig(grid=2, block=(3, 4))",
            "core.LaunchConfig(grid=2, cluster=2, block=1)", "add.num_arguments", "add.arguments_info",
            "add == code.get_kernel('add')", "code.get_kernel('none')", "code.get_kernel(5)",
            "code.name, code.code_type, type(code.code)", "core.Kernel()", "core.ObjectCode()",
            "core.ObjectCode.from_ptx(5)", "core.ObjectCode.from_ptx('/none').get_kernel('f')",
            "core.Program('', 'c')", "core.Program(b'', 'c++')", "add.attributes.max_threads_per_block",
            "add.attributes[0].shared_size_bytes", "add.attributes[9].num_regs",
        ):
            tell(text, s=s, one=one, add=add, buffer=buffer, code=code)
        """,
    "graphs": """
        from PACKAGE.core.graph import GraphBuilder, GraphCompleteOptions
        device.set_current()
        s, one = device.create_stream(), core.LaunchConfig(grid=1, block=1)
        buffer, found = numbers(0)
        add = core.ObjectCode.from_ptx(PTX).get_kernel("add")
        g = device.create_graph_builder()
        for text in (
            "g.is_building, g.is_join_required, g.is_closed", "g.complete()", "g.end_building()", "g.split(2)",
            "g.begin_building('x')", "g.begin_building() is g", "g.begin_building()", "g.is_building", "g.split(1)",
            "GraphBuilder.join(g)", "GraphBuilder.join(1, 2)", "GraphBuilder()", "device.allocate(4, stream=g)",
        ):
            tell(text, g=g, GraphBuilder=GraphBuilder)
        core.launch(g, one, add, buffer, 1)
        left, right = g.split(2)
        core.launch(left, one, add, buffer, 10)
        GraphBuilder.join(left, right)
        print(left is g, right.is_closed)
        core.launch(g, one, add, buffer, 100)
        g.end_building()
        r = g.complete(GraphCompleteOptions(upload_stream=s))
        for _ in range(2):
            r.launch(s)
        s.sync()
        print(found.tolist())
        unfinished = device.create_graph_builder()
        for text in (
            "g.is_building", "g.begin_building()", "r.launch(None)", "r.update(5)", "r.update(unfinished)",
            "r.update(g)", "r.close()", "r.is_closed", "r.launch(s)", "g.close()", "g.is_closed", "g.complete()",
            "device.default_stream.create_graph_builder().begin_building()",
        ):
            tell(text, g=g, r=r, s=s, unfinished=unfinished)
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_print_the_same(tmp_path: Path, name: str) -> None:
    printed = []
    for package, start in (("cuda", ["-m", "halstream", "run", "--cuda"]), ("halstream.cuda", [])):
        file = tmp_path / f"with_{package}.py"
        file.write_text((START + textwrap.dedent(PROGRAMS[name])).replace("PACKAGE", package))
        done = subprocess.run([sys.executable, *start, str(file)], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stdout + done.stderr
        printed.append(re.sub(r"(cuda\.core(?:\.graph)?)(\._\w+)+", r"\1", done.stdout).splitlines())
    theirs, ours = printed
    assert len(theirs) > 10
    assert "\n".join(ours) == "\n".join(theirs)
