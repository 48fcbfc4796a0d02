"""The look-alike driver: calls, faults, contexts, errors that stay, and the process."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_uint32, c_uint64, c_void_p
from pathlib import Path

import fake_driver
import pytest
from fakecuda_help import (
    INVALID_CONTEXT,
    INVALID_HANDLE,
    LEGACY,
    LIMIT,
    NOT_INITIALIZED,
    NOT_READY,
    NOT_SUPPORTED,
    Driver,
    Word,
    until,
)

Start = Callable[..., Driver]
PROGRAM = """
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
context, handle = ctypes.c_void_p(), ctypes.c_void_p()
assert lib.cuInit(0) == 0 and lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert lib.cuCtxSetCurrent(context) == 0 and lib.{make}(ctypes.byref(handle), 0) == 0
assert lib.{destroy}(handle) == 0
print(lib.{use}(handle))
"""


def address(driver: Driver, symbol: str, version: int) -> tuple[int | None, int]:
    found, status = c_void_p(), c_int(-1)
    assert driver.cuGetProcAddress_v2(symbol.encode(), byref(found), version, 0, byref(status)) == 0
    return found.value, status.value


def exported(driver: Driver, symbol: str) -> int | None:
    return ctypes.cast(getattr(driver.lib, symbol), c_void_p).value


def program(library: Path, source: str) -> subprocess.CompletedProcess[str]:
    head = f"import ctypes, os, threading\ncuda = ctypes.CDLL({str(library)!r})\n"
    command = [sys.executable, "-c", head + textwrap.dedent(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=20)


def current(driver: Driver) -> int:
    return int(driver.asked("cuCtxGetCurrent"))


def test_calls_before_init_fail(start: Start) -> None:
    """Spec 3.1: cuInit is the first call of a process."""
    assert start(init=False).cuDeviceGetCount(byref(c_int())) == NOT_INITIALIZED


def test_proc_address_returns_the_requested_version_of_a_function(start: Start) -> None:
    """Spec 1.4, trap 1: the version picks the ABI."""
    driver = start(init=False)
    assert address(driver, "cuEventElapsedTime", 12000)[0] == exported(driver, "cuEventElapsedTime")
    assert address(driver, "cuEventElapsedTime", 12080)[0] == exported(driver, "cuEventElapsedTime_v2")


def test_an_old_driver_lacks_new_functions(start: Start) -> None:
    driver = start(version=11020)
    assert driver.cuStreamBatchMemOp_v2(0, 1, None, 0) == NOT_SUPPORTED
    assert driver.count("absent") == 1
    assert address(start(version=12000), "cuStreamGetDevice", 12080) == (None, 1)


@pytest.mark.parametrize(
    ("make", "destroy", "use", "kind"),
    [
        ("cuEventCreate", "cuEventDestroy_v2", "cuEventQuery", "event"),
        ("cuStreamCreate", "cuStreamDestroy_v2", "cuStreamQuery", "stream"),
    ],
)
@pytest.mark.parametrize("strict", ["0", "1"])
def test_a_dead_handle_ends_the_process_where_it_is_strict(
    make: str, destroy: str, use: str, kind: str, strict: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(make=make, destroy=destroy, use=use), fake_driver.require()],
        capture_output=True,
        text=True,
        env={"FAKECUDA_STRICT": strict, "PATH": "/usr/bin:/bin"},
        timeout=30,
    )
    if strict == "0":
        assert (done.returncode, done.stdout) == (0, "400\n")
    else:
        assert done.returncode < 0
        assert re.search(rf"fakecuda: {use}: 0x[0-9a-f]+ is no live {kind};", done.stderr)


def test_a_null_handle_is_refused_everywhere(cuda: Driver) -> None:
    assert cuda.control("strict 1") == 0
    assert cuda.cuEventQuery(0) == 400
    assert cuda.control("strict 0") == 0


# -- what tests control ----------------------------------------------------------


def test_live_figures_follow_objects(cuda: Driver) -> None:
    names = ("live.contexts", "live.streams", "live.events")
    stream, event = cuda.stream(), cuda.event()
    assert [cuda.count(name) for name in names] == [1, 1, 1]
    cuda.cuStreamDestroy_v2(stream), cuda.cuEventDestroy_v2(event)
    assert [cuda.count(name) for name in names] == [1, 0, 0]


def test_a_fault_hits_one_call_and_does_none_of_its_work(cuda: Driver) -> None:
    stream, word = cuda.stream(), Word(cuda)
    assert cuda.control("fault cuStreamWriteValue32_v2 2 1") == 0
    codes = [cuda.cuStreamWriteValue32_v2(stream, word.address, i, 0) for i in (1, 2)]
    assert cuda.cuStreamSynchronize(stream) == 0 and (codes, word.value) == ([0, 1], 1)
    assert cuda.cuStreamWriteValue32_v2(stream, word.address, 3, 0) == 0


def test_a_sticky_fault_falls_on_the_context_of_the_stream(start: Start) -> None:
    driver = start()
    driver.context(1)
    stream, event = driver.stream(), driver.event()
    driver.context(0)
    driver.control("fault cuStreamQuery 1 700")
    assert driver.cuStreamQuery(stream) == 700
    assert [driver.cuCtxSynchronize(), driver.cuEventQuery(event)] == [0, 700]


@pytest.mark.parametrize("by", ["environment", "control"])
def test_a_full_queue_blocks_the_next_call(start: Start, by: str) -> None:
    """FAKECUDA_QUEUE: an enqueue waits while so many operations are pending."""
    driver = start(queue=8) if by == "environment" else start()
    driver.context()
    if by == "control":
        driver.control("queue 8")
    stream, word = driver.stream(), Word(driver)
    gate = driver.hold(stream)
    for i in range(7):
        assert driver.cuStreamWriteValue32_v2(stream, word.address, i, 0) == 0
    assert driver.pending(stream)
    assert driver.waits("cuStreamWriteValue32_v2", stream, word.address, 99, 0, on=gate)
    assert driver.cuStreamSynchronize(stream) == 0 and word.value == 99


def test_reset_is_a_fresh_load(start: Start) -> None:
    driver = start(devices=1)
    driver.context()
    stream = driver.stream()
    driver.hold(stream)
    driver.control("poison 0 700")
    again = start(devices=3)
    assert again.count("total") == 1  # cuInit
    assert again.asked("cuDeviceGetCount", type=c_int) == 3
    assert again.asked("cuCtxGetCurrent") == 0
    assert again.cuStreamQuery(stream) == INVALID_HANDLE
    again.context()
    assert again.cuCtxSynchronize() == 0


# -- contexts --------------------------------------------------------------------


def test_retain_gives_the_same_context_and_makes_none_current(start: Start) -> None:
    """Spec 3.3: the primary context is counted and shared."""
    driver = start()
    first, second = (driver.made("cuDevicePrimaryCtxRetain", 0) for _ in range(2))
    other = driver.made("cuDevicePrimaryCtxRetain", 1)
    assert first == second != other and current(driver) == 0


def test_the_current_context_is_the_threads(cuda: Driver) -> None:
    """Spec 6.7: a new thread has none, and calls that need one give 201."""
    seen: list[object] = []

    def other() -> None:
        seen.append(current(cuda))
        seen.append(cuda.cuEventCreate(byref(c_uint64()), 0))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(LIMIT)
    assert seen == [0, INVALID_CONTEXT]


def test_synchronize_waits_for_all_streams_of_the_context(cuda: Driver) -> None:
    word = cuda.hold(cuda.stream())
    assert cuda.waits("cuCtxSynchronize", on=word)


# -- errors ----------------------------------------------------------------------


def test_every_later_call_gives_the_code(cuda: Driver) -> None:
    """Spec 6.5: also those about objects that had nothing to do with it."""
    stream, other, event, memory = cuda.stream(), cuda.stream(), cuda.event(0), cuda.memory(16)
    cuda.cuEventRecord(event, other)
    assert cuda.launch(cuda.function("fault", "u32"), stream, c_uint32(719)) == 0
    until(lambda: cuda.cuStreamQuery(stream) not in (0, NOT_READY), "the fault")
    codes = {
        "cuStreamQuery": cuda.cuStreamQuery(other),
        "cuStreamSynchronize": cuda.cuStreamSynchronize(other),
        "cuEventQuery": cuda.cuEventQuery(event),
        "cuEventSynchronize": cuda.cuEventSynchronize(event),
        "cuEventRecord": cuda.cuEventRecord(event, other),
        "cuEventElapsedTime": cuda.cuEventElapsedTime(byref(c_float()), event, event),
        "cuStreamWaitEvent": cuda.cuStreamWaitEvent(other, event, 0),
        "cuCtxSynchronize": cuda.cuCtxSynchronize(),
        "cuMemAlloc_v2": cuda.cuMemAlloc_v2(byref(c_uint64()), 16),
        "cuMemFree_v2": cuda.cuMemFree_v2(memory),
        "cuMemsetD8Async": cuda.cuMemsetD8Async(memory, 0, 16, LEGACY),
        "cuStreamCreate": cuda.cuStreamCreate(byref(c_uint64()), 0),
        "cuEventCreate": cuda.cuEventCreate(byref(c_uint64()), 0),
        "cuEventDestroy_v2": cuda.cuEventDestroy_v2(event),
    }
    assert {name: code for name, code in codes.items() if code != 719} == {}


def test_pending_work_is_dropped_without_running(cuda: Driver) -> None:
    """Spec 6.5."""
    stream, word, event = cuda.stream(), Word(cuda), cuda.event()
    gate = cuda.hold(stream)
    cuda.cuStreamWriteValue32_v2(stream, word.address, 1, 0)
    cuda.cuEventRecord(event, stream)
    assert cuda.control("poison 0 700") == 0
    gate.value = 1
    assert cuda.cuEventQuery(event) == 700 and word.value == 0


def test_a_stream_that_waits_for_a_poisoned_context_waits_for_ever(start: Start) -> None:
    """Spec 6.5: the event is never reached, whatever the host is told."""
    driver = start()
    one = driver.context(1)
    other, healthy = driver.stream(), driver.stream()
    driver.context(0)
    stream, event = driver.stream(), driver.event()
    driver.hold(stream)
    driver.cuEventRecord(event, stream)
    assert driver.cuStreamWaitEvent(other, event, 0) == 0
    driver.control("poison 0 700")
    assert driver.cuStreamSynchronize(healthy) == 0
    assert driver.cuCtxSetCurrent(one) == 0 and driver.pending(other)


def test_a_lost_device_stays_lost(cuda: Driver) -> None:
    """Spec 6.5: only a new process helps; the context can be given up."""
    cuda.control("poison 0 700")
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(byref(c_uint64()), 0) == 700


@pytest.mark.parametrize(("code", "sticky"), [(700, True), (719, True), (2, False), (400, False), (720, False)])
def test_which_codes_stay(cuda: Driver, code: int, sticky: bool) -> None:
    """Spec 5: the list of sticky codes, here through an asked-for fault."""
    cuda.control(f"fault cuMemAlloc_v2 1 {code}")
    assert cuda.cuMemAlloc_v2(byref(c_uint64()), 16) == code
    assert cuda.cuCtxSynchronize() == (code if sticky else 0)


# -- the process -----------------------------------------------------------------


def test_after_fork_calls_fail_where_the_parent_had_called_init(library: Path) -> None:
    """Spec 6.6."""
    done = program(
        library,
        """
        assert cuda.cuInit(0) == 0
        child = os.fork()
        if child == 0:
            os._exit(cuda.cuInit(0))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), cuda.cuInit(0))
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 0\n", "")


def test_calls_after_the_library_has_ended_return_4(library: Path, tmp_path: Path) -> None:
    """Spec 6.5: at process exit calls return 4.

    The C library ends what it loaded last after what it loaded first.
    """
    source, late = tmp_path / "late.c", tmp_path / "late.so"
    source.write_text(
        "#include <unistd.h>\nint (*init)(unsigned);\n"
        "__attribute__((destructor)) static void last(void) { if (init) _exit(40 + init(0)); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", late, source], check=True)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import ctypes\ncuda, late = (ctypes.CDLL(path) for path in ({str(library)!r}, {str(late)!r}))\n"
            "assert cuda.cuInit(0) == 0\n"
            "at = ctypes.cast(cuda.cuInit, ctypes.c_void_p).value\n"
            "ctypes.c_void_p.in_dll(late, 'init').value = at\n",
        ],
        timeout=20,
    )
    assert done.returncode == 44
