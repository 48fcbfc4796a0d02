"""Loading, versions, devices, entry points, fork and exit of the look-alike driver."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p, create_string_buffer
from pathlib import Path

import pytest
from fakecuda_help import (
    INVALID_VALUE,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    SIGNATURES,
    Driver,
)

Start = Callable[..., Driver]


def test_the_library_identifies_itself_as_the_look_alike(loaded: Driver) -> None:
    assert loaded.lib.fakecuda_is_fake() == 1


@pytest.mark.parametrize("version", [11020, 12000, 12090, 13000])
def test_the_version_is_available_before_init(start: Start, version: int) -> None:
    """Spec 3.1: cuDriverGetVersion works before cuInit."""
    assert start(init=False, version=version).asked("cuDriverGetVersion", type=c_int) == version


def test_calls_before_init_fail(start: Start) -> None:
    """Spec 3.1: cuInit is the first call of a process."""
    assert start(init=False).cuDeviceGetCount(byref(c_int())) == NOT_INITIALIZED


def test_init_wants_no_flags_and_may_be_called_again(start: Start) -> None:
    """Spec 3.1: flags must be 0."""
    driver = start(init=False)
    assert [driver.cuInit(1), driver.cuInit(0), driver.cuInit(0)] == [INVALID_VALUE, 0, 0]


def test_without_devices_init_gives_100(start: Start) -> None:
    """Spec 1.1: 100 of cuInit is as normal as no driver."""
    assert start(init=False, devices=0).cuInit(0) == 100


@pytest.mark.parametrize(("visible", "count"), [("", 0), ("1", 1), ("1,0", 2), ("0,7,1", 1)])
def test_visible_devices_are_obeyed(start: Start, visible: str, count: int) -> None:
    """Spec 1.1: CUDA_VISIBLE_DEVICES hides devices, all of them when empty."""
    driver = start(init=False, CUDA_VISIBLE_DEVICES=visible)
    driver.cuInit(0)
    assert driver.asked("cuDeviceGetCount", type=c_int) == count if count else driver.cuInit(0) == 100


def test_a_visible_device_keeps_its_identity(start: Start) -> None:
    name, visible = create_string_buffer(64), create_string_buffer(64)
    start().cuDeviceGetName(name, 64, 1)
    start(CUDA_VISIBLE_DEVICES="1").cuDeviceGetName(visible, 64, 0)
    assert name.value == visible.value == b"Look-alike 1"


def test_devices_have_names_ids_and_sizes(start: Start) -> None:
    """Spec 3.2."""
    driver = start(devices=3, memory=64 << 20)
    assert driver.asked("cuDeviceGetCount", type=c_int) == 3
    name, bus, uuids = create_string_buffer(64), create_string_buffer(16), set()
    for device in range(3):
        place, size, uuid = c_int(-1), c_size_t(), create_string_buffer(16)
        assert driver.cuDeviceGet(byref(place), device) == 0 and place.value == device
        assert driver.cuDeviceGetName(name, 64, device) == 0 and str(device).encode() in name.value
        assert driver.cuDeviceTotalMem_v2(byref(size), device) == 0 and size.value == 64 << 20
        assert driver.cuDeviceGetPCIBusId(bus, 16, device) == 0 and len(bus.value) == 12
        assert driver.cuDeviceGetUuid_v2(uuid, device) == 0
        uuids.add(uuid.raw)
    assert len(uuids) == 3
    assert driver.cuDeviceGet(byref(c_int()), 3) == 101


@pytest.mark.parametrize(("attribute", "value"), [(1, 1024), (10, 32), (75, 9), (78, 1), (115, 1), (122, 1)])
def test_attributes(start: Start, attribute: int, value: int) -> None:
    """Spec 4: device attributes by number."""
    place = c_int()
    assert start().cuDeviceGetAttribute(byref(place), attribute, 0) == 0
    assert place.value == value


def test_an_unknown_attribute_is_an_invalid_value(start: Start) -> None:
    """Spec 3.2: also 115 where the driver is too old for it."""
    place = c_int()
    assert start().cuDeviceGetAttribute(byref(place), 100000, 0) == INVALID_VALUE
    assert start(version=11010).cuDeviceGetAttribute(byref(place), 115, 0) == INVALID_VALUE


def test_names_of_errors(start: Start) -> None:
    """Spec 3.1: an unknown code gives 1 and no text."""
    driver, text = start(init=False), c_char_p()
    assert driver.cuGetErrorName(700, byref(text)) == 0 and text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    assert driver.cuGetErrorString(600, byref(text)) == 0 and text.value
    assert driver.cuGetErrorName(12345, byref(text)) == INVALID_VALUE and text.value is None


def address(driver: Driver, symbol: str, version: int) -> tuple[int | None, int]:
    found, status = c_void_p(), c_int(-1)
    assert driver.cuGetProcAddress_v2(symbol.encode(), byref(found), version, 0, byref(status)) == 0
    return found.value, status.value


def exported(driver: Driver, symbol: str) -> int | None:
    return ctypes.cast(getattr(driver.lib, symbol), c_void_p).value


def test_proc_address_finds_by_base_and_version(start: Start) -> None:
    """Spec 1.4: the call succeeds even when nothing is found."""
    driver = start(init=False)
    assert address(driver, "cuMemAlloc", 3020) == (exported(driver, "cuMemAlloc_v2"), 0)
    assert address(driver, "cuMemAlloc", 2000) == (None, 2)
    assert address(driver, "cuNoSuchThing", 12000) == (None, 1)


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


def test_all_functions_are_found_by_their_names(loaded: Driver) -> None:
    symbols = subprocess.run(["nm", "-D", "--defined-only", loaded.lib._name], capture_output=True, text=True)
    found = {line.split()[2] for line in symbols.stdout.splitlines()}
    control = {"fakecuda_control", "fakecuda_count", "fakecuda_host", "fakecuda_is_fake"}
    assert found == set(SIGNATURES) | control


def program(library: Path, source: str) -> subprocess.CompletedProcess[str]:
    head = f"import ctypes, os, threading\ncuda = ctypes.CDLL({str(library)!r})\n"
    command = [sys.executable, "-c", head + textwrap.dedent(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=20)


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


def test_after_fork_of_a_process_that_only_loaded_it_calls_work(library: Path) -> None:
    """Spec 6.6: dlopen without cuInit is fine."""
    done = program(
        library,
        """
        child = os.fork()
        if child == 0:
            os._exit(40 + cuda.cuInit(0))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "40\n", "")


def test_a_process_ends_with_streams_held_and_functions_pending(library: Path) -> None:
    """Spec 6.5: at exit nothing hangs, and what is pending does not run."""
    done = program(
        library,
        """
        Q = ctypes.c_uint64
        context, stream, at = Q(), Q(), ctypes.c_void_p()
        cuda.cuInit(0)
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        cuda.cuCtxSetCurrent(context)
        cuda.cuStreamCreate(ctypes.byref(stream), 1)
        cuda.cuMemHostAlloc(ctypes.byref(at), ctypes.c_size_t(64), 0)
        ctypes.c_uint32.from_address(at.value).value = 0
        assert cuda.cuStreamWaitValue32_v2(stream, Q(at.value), 1, 0) == 0
        never = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: print("ran", flush=True))
        assert cuda.cuLaunchHostFunc(stream, never, None) == 0
        print("end", flush=True)
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


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
