"""Programs in C and Python on libcuda.so.1."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from libcuda_help import DRIVER, PROGRAMS, Compiled, Run

pytest.importorskip("typer", reason="the extra cli is not installed")


@pytest.mark.parametrize("noun", ["devices", "contexts", "memory", "streams", "graphs"])
def test_U1_each_noun_of_the_driver_does_what_is_documented(compiled: Compiled, run: Run, noun: str) -> None:
    done = run(compiled("basics"), noun)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


EDGES = [
    "threads",
    "resets",
    "batches",
    "sizes",
    "libraries",
    "objects",
    "arguments",
    "attributes",
    "nodes",
    "flags",
    "pools",
]
EDGES += ["waits", "numbers", "retained", "streams", "stuck"]


@pytest.mark.parametrize("edge", EDGES)
def test_U1_each_edge_of_the_functions_is_as_documented(compiled: Compiled, run: Run, edge: str) -> None:
    done = run(compiled("edges"), edge)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_M26_what_one_process_writes_to_shared_memory_the_other_sees(compiled: Compiled, run: Run) -> None:
    done = run(compiled("processes"), "memory")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_E10_an_event_stands_for_the_record_that_either_process_made_last(compiled: Compiled, run: Run) -> None:
    done = run(compiled("processes"), "events")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("noun", ["devices", "memory", "kernels", "streams", "faults"])
def test_U7_the_calls_of_the_cuda_runtime_are_as_documented(compiled: Compiled, run: Run, noun: str) -> None:
    done = run(compiled("runtime"), noun)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    refused = "cudaMallocArray is not provided by its CUDA runtime" in done.stderr
    assert refused is (noun == "devices"), done.stderr


def test_U7_a_missing_wait_of_launches_by_the_cuda_runtime_is_reported(compiled: Compiled, run: Run) -> None:
    program = compiled("runtime_unordered")
    done = run(program, HALSTREAM_SANITIZE="1")
    assert done.returncode == 66, done.stderr
    lines = (PROGRAMS / "runtime_unordered.c").read_text().splitlines()
    places = [("1. add writes", "first, numbers, 256, 2"), ("2. add reads", "second, numbers, 256, 3")]
    for operation, call_text in places:
        number = next(i for i, line in enumerate(lines, 1) if call_text in line)
        part = done.stderr[done.stderr.index(operation) :]
        assert f"runtime_unordered.c:{number}, in main" in part, done.stderr
    done = run(program, "wait", HALSTREAM_SANITIZE="1")
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr


def test_U2_functions_are_found_by_name_and_version(compiled: Compiled, run: Run) -> None:
    done = run(compiled("basics"), "entries")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "kernels here have no textures, surfaces and arrays" in done.stderr  # what is refused says why


def test_U3_programs_are_ptx(compiled: Compiled, run: Run) -> None:
    done = run(compiled("basics"), "modules")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "compile it so that it holds PTX as well" in done.stderr  # a program of machine code alone


def test_U4_a_fault_of_a_kernel_loses_the_context_until_its_reset(compiled: Compiled, run: Run) -> None:
    done = run(compiled("faults"))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    told = [line for line in done.stderr.splitlines() if "CUDA_ERROR_ILLEGAL_ADDRESS" in line]
    assert len(told) == 1, done.stderr
    assert re.search(r"at kernel add by thread \(\d+,0,0\) in block \(\d,0,0\)", told[0])  # of some block the first


def test_U6_a_wait_that_can_never_end_is_reported(compiled: Compiled, run: Run) -> None:
    done = run(compiled("stuck"))
    assert done.returncode == 0, done.stderr
    assert "this wait can never end" in done.stderr
    assert "the value at" in done.stderr
    assert re.search(r"at \S*stuck\.c:\d+, in main", done.stderr)


@pytest.mark.parametrize("way", ["variable", "command"])
def test_U6_a_missing_wait_of_two_kernels_is_reported_with_its_lines(
    compiled: Compiled, run: Run, halstream: Run, way: str
) -> None:
    program = compiled("unordered")
    start = [program] if way == "variable" else ["run", "--cuda", "--sanitize", program]
    call = run if way == "variable" else halstream
    env = {"HALSTREAM_SANITIZE": "1"} if way == "variable" else {}
    done = call(*start, **env)
    assert done.returncode == (66 if way == "variable" else 1), done.stderr
    assert "unordered access: two operations touch the same 1024 bytes, and nothing orders them" in done.stderr
    lines = (PROGRAMS / "unordered.c").read_text().splitlines()
    for operation, call_text in [
        ("1. add writes", "add(f, numbers, 256, 2, first)"),
        ("2. add reads", "256, 3, second"),
    ]:
        number = next(i for i, line in enumerate(lines, 1) if call_text in line)
        part = done.stderr[done.stderr.index(operation) :]
        assert f"unordered.c:{number}, in main" in part, done.stderr
    done = call(*start, "wait", **env)
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


def test_U6_a_failing_order_of_a_program_is_found(compiled: Compiled, halstream: Run) -> None:
    done = halstream("run", "--cuda", "--schedules", "30", compiled("turns"))
    assert done.returncode == 1, done.stderr
    assert "the program ended with exit code 3, in run " in done.stderr
    done = halstream("run", "--cuda", "--schedules", "5", compiled("turns"), "wait")
    assert done.returncode == 0, done.stderr


def test_U6_a_child_that_was_forked_gets_an_error(compiled: Compiled, run: Run) -> None:
    done = run(compiled("forks"))
    assert (done.returncode, done.stdout) == (0, "the child: 3\n"), done.stderr


SCRIPT = """
import ctypes
import sys

cu = ctypes.CDLL("libcuda.so.1")
PTX = open(sys.argv[1]).read().encode()


def ok(code):
    assert code == 0, code


def handle(call, *given):
    made = ctypes.c_void_p()
    ok(call(ctypes.byref(made), *given))
    return made


ok(cu.cuInit(0))
context = handle(cu.cuDevicePrimaryCtxRetain, 0)
ok(cu.cuCtxSetCurrent(context))
add = handle(cu.cuModuleGetFunction, handle(cu.cuModuleLoadData, PTX), b"add")
numbers, count, more = ctypes.c_uint64(), ctypes.c_uint32(256), ctypes.c_uint32(2)
ok(cu.cuMemAlloc_v2(ctypes.byref(numbers), ctypes.c_size_t(1024)))
ok(cu.cuMemsetD32_v2(numbers, 1, ctypes.c_size_t(256)))
ok(cu.cuCtxSynchronize())
first, second = handle(cu.cuStreamCreate, 1), handle(cu.cuStreamCreate, 1)
parameters = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (numbers, count, more)))
ok(cu.cuLaunchKernel(add, 2, 1, 1, 128, 1, 1, 0, first, parameters, None))  # the first
if len(sys.argv) > 2:
    ok(cu.cuStreamSynchronize(first))
ok(cu.cuLaunchKernel(add, 2, 1, 1, 128, 1, 1, 0, second, parameters, None))  # the second
ok(cu.cuCtxSynchronize())
found = (ctypes.c_uint32 * 256)()
ok(cu.cuMemcpyDtoH_v2(found, numbers, ctypes.c_size_t(1024)))
print(set(found))
"""


@pytest.fixture
def script(tmp_path: Path) -> list[Path]:
    """The same program in Python, and its kernels."""
    text = (PROGRAMS / "driver.h").read_text()
    text = text[text.index("kernels[] =") :]
    kernels = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text[: text.index(";\n\nstatic")]))
    (tmp_path / "kernels.ptx").write_text(kernels.encode().decode("unicode_escape"))
    (tmp_path / "program.py").write_text(SCRIPT)
    return [tmp_path / "program.py", tmp_path / "kernels.ptx"]


def test_U5_a_missing_wait_in_python_is_reported_with_its_lines(script: list[Path], halstream: Run) -> None:
    done = halstream("run", "--cuda", "--sanitize", *script)
    assert done.returncode == 1, done.stderr
    lines = SCRIPT.splitlines()
    for what in ("first", "second"):
        number = next(i for i, line in enumerate(lines, 1) if f"# the {what}" in line)
        assert f"program.py:{number} in <module>" in done.stderr, done.stderr
    assert "1. add writes on stream 1" in done.stderr, done.stderr
    done = halstream("run", "--cuda", "--sanitize", *script, "wait")
    assert (done.returncode, done.stdout) == (0, "{5}\n"), done.stderr


def test_U5_python_and_the_package_share_one_runtime(script: list[Path], tmp_path: Path) -> None:
    """The extension is loaded by the driver first, then by the package."""
    more = "\nimport halstream\nfrom halstream import _native\n"
    more += "print(_native.extension().pybuild_Live(), halstream.backend())\n"
    both = tmp_path / "both.py"
    both.write_text(SCRIPT + more)
    env = {**os.environ, "LD_LIBRARY_PATH": str(DRIVER), "HALSTREAM_BACKEND": "auto"}
    words = [sys.executable, "-X", "faulthandler", both, script[1], "wait"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env)
    assert (done.returncode, done.stdout) == (0, "{5}\n2 host\n"), done.stderr


def test_U5_a_stream_of_the_package_is_one_of_the_driver(script: list[Path], halstream: Run) -> None:
    """A kernel that the driver launches there runs between two operations of the package."""
    more = """
import numpy as np
import halstream as hs

x, s, flags = hs.zeros(256, np.uint32), hs.Stream(non_blocking=True), ctypes.c_uint32()
hs.synchronize()
x.fill(40, stream=s)
numbers.value = x.ptr
given = ctypes.c_void_p(s.handle)
ok(cu.cuLaunchKernel(add, 2, 1, 1, 128, 1, 1, 0, given, parameters, None))
ok(cu.cuStreamGetFlags(given, ctypes.byref(flags)))
print(set(x.numpy(s).tolist()), flags.value, cu.cuStreamDestroy_v2(given))
s.close()
print(cu.cuStreamQuery(given))
"""
    script[0].write_text(SCRIPT + more)
    done = halstream("run", "--cuda", "--sanitize", *script, "wait")
    assert (done.returncode, done.stdout) == (0, "{5}\n{42} 1 400\n400\n"), done.stdout + done.stderr


HANDLER = """
import ctypes
import os
import signal
import sys
import threading
import time

import halstream

cu, holding = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")  # the second keeps Python's lock in calls


def ok(code):
    assert code == 0, code


def made(call, *given):
    handle = ctypes.c_uint64()
    ok(call(ctypes.byref(handle), *given))
    return handle


ok(cu.cuInit(0))
ok(cu.cuCtxSetCurrent(made(cu.cuDevicePrimaryCtxRetain, 0)))
stuck, other = made(cu.cuStreamCreate, 1), made(cu.cuStreamCreate, 1)
numbers = made(cu.cuMemAlloc_v2, ctypes.c_size_t(8))
ok(cu.cuMemsetD32_v2(numbers, 0, ctypes.c_size_t(2)))
sys.setswitchinterval(100)  # another thread runs only where this one waits


def waits(value, wait, end):
    begun = threading.Lock()
    begun.acquire()
    ender = threading.Thread(target=lambda: (begun.acquire(), end()), daemon=True)
    ender.start()
    ok(cu.cuStreamWaitValue64_v2(stuck, numbers, ctypes.c_uint64(value), 1))
    begun.release()
    wait()
    ender.join()


def write(value):
    for _ in range(100):  # takes the lock again and again, also while the other thread waits
        time.sleep(0.001)
    ok(holding.cuStreamWriteValue64_v2(other, numbers, ctypes.c_uint64(value), 0))


signal.signal(signal.SIGUSR1, lambda *_: write(1))
waits(1, lambda: ok(cu.cuStreamSynchronize(stuck)), lambda: os.kill(os.getpid(), signal.SIGUSR1))
waits(2, halstream.synchronize, lambda: write(2))
print("done")
"""


def test_U5_a_call_in_a_handler_of_a_signal_leaves_the_call_that_waits_as_it_was(tmp_path: Path) -> None:
    """Afterwards a wait of the package still lets another thread of Python's run, which ends it."""
    (tmp_path / "program.py").write_text(HANDLER)
    env = {**os.environ, "LD_LIBRARY_PATH": str(DRIVER), "HALSTREAM_BACKEND": "auto"}
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=60, env=env
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.skipif(find_spec("numba_cuda") is None, reason="needs numba-cuda, as in make oracle-libcuda")
def test_U5_the_example_of_numba_is_right_and_its_missing_wait_is_reported(halstream: Run) -> None:
    example = Path(__file__).parents[2] / "examples" / "cuda_numba.py"
    done = halstream("run", "--cuda", "--sanitize", example)
    assert (done.returncode, done.stdout) == (0, "means: [0.0, 1.0, 2.0, 3.0]\n"), done.stderr
    done = halstream("run", "--cuda", "--sanitize", example, "broken")
    assert done.returncode == 1, done.stderr
    for line in ("values.copy_to_device(batch, stream=copies)", "smooth[SIZE // 128, 128, compute](values, out)"):
        assert line in done.stderr, done.stderr
