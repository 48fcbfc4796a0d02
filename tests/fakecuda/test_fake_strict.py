"""What a driver leaves undefined, or refuses by its version: dead handles, attributes of devices."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from ctypes import byref, c_int

import fake_driver
import pytest
from fakecuda_help import Driver

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


#: The last attribute of the headers of some versions of CUDA.
LAST = {11020: 115, 11080: 124, 12000: 129, 12020: 134, 12080: 143, 13050: 161}


@pytest.mark.parametrize("version", LAST)
def test_all_attributes_of_a_version_are_answered(version: int, start: Start) -> None:
    driver = start(version=version)
    value = c_int()
    codes = [driver.lib.cuDeviceGetAttribute(byref(value), number, 0) for number in range(1, LAST[version] + 1)]
    assert codes == [0] * LAST[version], [i + 1 for i, code in enumerate(codes) if code]
    assert driver.lib.cuDeviceGetAttribute(byref(value), LAST[version] + 1, 0) == 1
