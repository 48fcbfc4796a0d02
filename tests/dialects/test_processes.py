"""M26, E10: memory and events that two processes of Python have, by the handles of the dialects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import halstream as hs
import pytest
from halstream import cupy
from halstream.torch import cuda

runtime = cupy.cuda.runtime
pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.needs("processes"),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is shared by files of Linux that exist only in memory"),
]

OTHER = """
import sys
import numpy as np
from halstream import cupy
from halstream.torch import cuda
runtime = cupy.cuda.runtime
memory, event = (bytes.fromhex(input()) for _ in range(2))
address = runtime.ipcOpenMemHandle(memory)
assert runtime.ipcOpenMemHandle(memory) == address
runtime.ipcCloseMemHandle(address)
owner = cupy.cuda.memory.UnownedMemory(address, 32, None, 0)
x = cupy.ndarray((8,), dtype="i4", memptr=cupy.cuda.memory.MemoryPointer(owner, 0))
event = cuda.Event.from_ipc_handle(0, event)
s = cuda.Stream()
s.wait_event(event)
print(event.query(), s.query(), flush=True)
input()
s.synchronize()
print(event.query(), x.get().tolist(), flush=True)
x.fill(7)
cupy.cuda.Device(0).synchronize()
runtime.ipcCloseMemHandle(address)
try:
    runtime.ipcCloseMemHandle(address)
except runtime.CUDARuntimeError as error:
    print(error.status, cuda.memory_allocated(), flush=True)
"""


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def test_M26_E10_two_processes_have_memory_and_an_event(other: subprocess.Popen[str]) -> None:
    assert other.stdin is not None and other.stdout is not None and other.stderr is not None
    x = cupy.zeros(8, dtype="i4")
    s, event = cuda.Stream(), cuda.Event(interprocess=True)
    handle = runtime.ipcGetMemHandle(x.data.ptr)
    gate = hs.testing.Gate(s)
    with cupy.cuda.Stream.from_external(s):
        x.fill(3)
    event.record(s)
    print(handle.hex(), event.ipc_handle().hex(), sep="\n", file=other.stdin, flush=True)
    assert other.stdout.readline() == "False False\n", other.stderr.read()
    gate.open()
    print(file=other.stdin, flush=True)
    assert other.stdout.readline() == "True [3, 3, 3, 3, 3, 3, 3, 3]\n", other.stderr.read()
    assert other.stdout.readline() == "1 0\n", other.stderr.read()
    assert other.wait(30) == 0
    assert x.get().tolist() == [7] * 8


def test_M26_what_no_process_can_open_is_refused() -> None:
    own = runtime.ipcGetMemHandle(cupy.zeros(8).data.ptr)
    for handle, flags, status in ((own, 1, 400), (bytes(64), 1, 1), (b"short", 1, 1), (own, 0, 1)):
        with pytest.raises(runtime.CUDARuntimeError) as caught:
            runtime.ipcOpenMemHandle(handle, flags)
        assert caught.value.status == status
    with pytest.raises(runtime.CUDARuntimeError) as caught:
        runtime.ipcGetMemHandle(cupy.cuda.alloc_pinned_memory(8).ptr)
    assert caught.value.status == 1
    with pytest.raises(runtime.CUDARuntimeError) as caught:
        runtime.ipcGetEventHandle(runtime.eventCreate())
    assert caught.value.status == 1
