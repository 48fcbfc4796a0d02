"""The backend for Ascend NPUs, on the look-alike of CANN's library (clause N13)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_driver
import pytest

LIMIT = 60


@pytest.fixture
def program() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a program on the backend, with the look-alike if no library is given."""
    library = fake_driver.require("ascend-fake")

    def program(source: str, **env: str) -> subprocess.CompletedProcess[str]:
        given = {
            "HALSTREAM_BACKEND": "ascend",
            "HALSTREAM_ASCEND_LIBRARY": library,
            "HALSTREAM_CUDA_LIBRARY": "/nowhere/libcuda.so.1",
            **env,
        }
        return subprocess.run(
            [sys.executable, "-W", "error", "-X", "faulthandler", "-c", textwrap.dedent(source)],
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

    return program


ABSENT = """
import halstream as hs
try:
    hs.Stream()
except hs.BackendAbsentError as exc:
    print(exc)
"""


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"HALSTREAM_ASCEND_LIBRARY": "/nowhere/libascendcl.so"}, ["/nowhere/libascendcl.so", "unset"]),
        ({"HALSTREAM_ASCEND_LIBRARY": ""}, ["libascendcl.so", "install CANN", "set_env.sh", "HALSTREAM_BACKEND=host"]),
        ({"HALSTREAM_ASCEND_LIBRARY": __file__}, ["cannot be loaded"]),
        ({"HALSTREAM_ASCEND_LIBRARY": "libc.so.6"}, ["lacks the function aclInit", "CANN 8.0"]),
        ({"FAKEACL_DEVICES": "0"}, ["no device", "ASCEND_RT_VISIBLE_DEVICES"]),
        ({"FAKEACL_FAULTS": "aclInit:1:507899"}, ["aclInit", "507899", "npu-smi"]),
        ({"FAKEACL_FAULTS": "aclInit:1:100039"}, ["100039", "stub"]),
    ],
    ids=["no file", "not installed", "a text", "another library", "no device", "broken", "stub"],
)
def test_N13_a_library_that_cannot_be_used_is_named_with_what_to_do(
    program: Any, env: dict[str, str], says: list[str]
) -> None:
    done = program(ABSENT, **env)
    assert done.returncode == 0, done.stderr
    for words in says:
        assert words in done.stdout


CHOICE = "import halstream as hs; print(hs.use_backend('auto'))"


def test_N13_automatic_choice_takes_cuda_then_ascend_then_host(program: Any) -> None:
    cuda = fake_driver.require("cuda-fake")
    taken = [
        program(CHOICE, HALSTREAM_BACKEND="auto", HALSTREAM_CUDA_LIBRARY=cuda),
        program(CHOICE, HALSTREAM_BACKEND="auto"),
        program(CHOICE, HALSTREAM_BACKEND="auto", HALSTREAM_ASCEND_LIBRARY="/nowhere/libascendcl.so"),
    ]
    assert [done.stdout.split() for done in taken] == [["cuda"], ["ascend"], ["host"]], taken


def test_N13_functions_run_on_threads_of_the_program(program: Any) -> None:
    done = program(
        """
        import ctypes, os, threading
        import halstream as hs
        fake = ctypes.CDLL(os.environ["HALSTREAM_ASCEND_LIBRARY"])
        fake.fakeacl_count.restype = ctypes.c_uint64
        a, b, seen = hs.Stream(), hs.Stream(), []
        for number in range(20):
            e = hs.Event()
            a.call(lambda number=number: seen.append((number, threading.current_thread() in threading.enumerate())))
            a.record(e)
            b.wait_event(e)
            b.call(lambda number=number: seen.append((-number, True)))
        b.synchronize(timeout=20)
        assert seen.index((19, True)) < seen.index((-19, True)), seen
        print(hs.backend(), len(seen), all(known for _, known in seen), fake.fakeacl_count(b"illegal"))
        """
    )
    assert done.stdout.split() == ["ascend", "40", "True", "0"], done.stderr


def test_N13_memory_goes_to_the_device_and_back(program: Any) -> None:
    done = program(
        """
        import halstream as hs
        import numpy as np
        s, n = hs.Stream(), 100_000
        there, back = hs.empty(n, dtype="int32"), np.zeros(n, "int32")
        there.copy_from(np.arange(n, dtype="int32"), stream=s)
        there.copy_to(back, stream=s)
        s.synchronize(timeout=20)
        assert (back == np.arange(n)).all()
        there.fill(0x01020304, stream=s)
        there.copy_to(back, stream=s)
        s.synchronize(timeout=20)
        print(hs.backend(), hex(back.min()), hex(back.max()))
        """
    )
    assert done.stdout.split() == ["ascend", "0x1020304", "0x1020304"], done.stderr


@pytest.mark.parametrize("last", ["s.call(stop.wait)", "s.call(stop.wait); [s.nop() for _ in range(100)]"])
def test_N13_a_program_may_end_with_pending_work(program: Any, last: str) -> None:
    done = program(
        f"""
        import threading
        import halstream as hs
        stop, s = threading.Event(), hs.Stream()
        kept = {last.partition(";")[0]}
        {last.partition(";")[2].strip() or "pass"}
        threading.Timer(0.2, stop.set).start()
        print("ended")
        """
    )
    assert (done.returncode, done.stdout.split()) == (0, ["ended"]), done.stderr


def test_N13_the_tests_that_are_left_out_exist() -> None:
    root = Path(__file__).resolve().parents[2]
    lines = (root / "tests" / "ascend_differs.txt").read_text().splitlines()
    names = [line.partition(": ")[0].partition("[")[0] for line in lines if not line.startswith("#")]
    assert names == sorted(names)
    for name in names:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (root / file).read_text(), name
