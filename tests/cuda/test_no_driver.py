"""Drivers that cannot be used: each is a named error that says what to do."""

from __future__ import annotations

import ctypes
import json
from typing import Any, NamedTuple

import pytest
from cuda_help import FAKE, Program


class Case(NamedTuple):
    """One way in which there is no driver."""

    says: tuple[str, ...]  #: what the text of the error has, the advice last
    library: str | None = "copy"  #: HALSTREAM_CUDA_LIBRARY
    lacks: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    code: int = 0


CASES = {
    "no file": Case(("/nowhere/libcuda.so.1", "HALSTREAM_CUDA_LIBRARY", "unset"), "/nowhere/libcuda.so.1"),
    "no library at all": Case(("no NVIDIA driver", "HALSTREAM_BACKEND=host"), None),
    "a text": Case(("cannot be loaded", "unset"), __file__),
    "a folder": Case(("cannot be loaded", "unset"), "/tmp"),
    "another library": Case(("libc.so.6", "is no CUDA driver", "cuDriverGetVersion", "unset"), "libc.so.6"),
    "too old": Case(("CUDA 11.1", "11.2", "update the GPU's driver"), env=(("FAKECUDA_VERSION", "11010"),)),
    "no version": Case(("cuDriverGetVersion failed", "unset"), env=(("FAKECUDA_FAULTS", "cuDriverGetVersion:0:999"),)),
    "lacks a function": Case(
        ("lacks the function cuEventRecord", "reinstall"), lacks=("cuEventRecord", "cuGetProcAddress_v2")
    ),
    "no device": Case(
        ("cuInit", "CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"), env=(("FAKECUDA_DEVICES", "0"),), code=100
    ),
    "none visible": Case(
        ("cuInit", "CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"), env=(("CUDA_VISIBLE_DEVICES", ""),), code=100
    ),
    "stub": Case(("cuInit", "CUDA_ERROR_STUB_LIBRARY", "stub"), env=(("FAKECUDA_FAULTS", "cuInit:0:34"),), code=34),
    "not ready": Case(
        ("cuInit", "CUDA_ERROR_SYSTEM_NOT_READY", "fabric"), env=(("FAKECUDA_FAULTS", "cuInit:0:802"),), code=802
    ),
    "mismatch": Case(
        ("cuInit", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart the machine"),
        env=(("FAKECUDA_FAULTS", "cuInit:0:803"),),
        code=803,
    ),
    "compatibility": Case(
        ("cuInit", "804", "compatibility"),
        env=(("FAKECUDA_FAULTS", "cuInit:0:804"),),
        code=804,
    ),
    "broken": Case(("cuInit", "CUDA_ERROR_UNKNOWN", "log"), env=(("FAKECUDA_FAULTS", "cuInit:0:999"),), code=999),
    "cannot count": Case(
        ("cuDeviceGetCount", "CUDA_ERROR_NOT_INITIALIZED", "fork"),
        env=(("FAKECUDA_FAULTS", "cuDeviceGetCount:0:3"),),
        code=3,
    ),
}


@pytest.fixture(scope="module")
def outcomes(run_program: Program, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each case ends with; each has a copy of the library that was never loaded."""
    folder = tmp_path_factory.mktemp("drivers")
    cases = {name: case._asdict() for name, case in CASES.items()}
    done = run_program(
        f"""
        import json, os, sys
        import look_alike
        import halstream as hs
        told = {{}}
        for number, (name, case) in enumerate(json.loads({json.dumps(cases)!r}).items()):
            env = dict(case["env"])
            path = case["library"]
            if path == "copy":
                path = look_alike.without({str(FAKE)!r}, *case["lacks"], to=f"{folder}/{{number}}.so")
            os.environ.pop("HALSTREAM_CUDA_LIBRARY", None)
            os.environ.update(env)
            if path is not None:
                os.environ["HALSTREAM_CUDA_LIBRARY"] = path
            exc = look_alike.error(hs.use_backend, "cuda")
            second = look_alike.error(hs.use_backend, "cuda")
            told[name] = type(exc).__name__, exc.code, str(exc), exc.operation, str(second)
            for variable in env:
                del os.environ[variable]
        # None of them leaves anything that keeps a good driver from being used.
        os.environ["HALSTREAM_CUDA_LIBRARY"] = {str(FAKE)!r}
        assert hs.use_backend("cuda") == "cuda"
        s = hs.Stream()
        s.call(int)
        s.synchronize(timeout=10)
        print(json.dumps(told))
        """,
        HALSTREAM_CUDA_LIBRARY=None,
    )
    assert done.stderr == ""
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("name", CASES)
def test_a_driver_that_cannot_be_used_is_named_with_what_to_do(outcomes: dict[str, Any], name: str) -> None:
    if name == "no library at all":
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            pass
        else:
            pytest.skip("this machine has a driver")
    kind, code, text, operation, again = outcomes[name]
    assert (kind, code) == ("BackendAbsentError", CASES[name].code)
    assert again == text
    assert operation
    for part in CASES[name].says:
        assert part in text


LOGGED = """
import logging
import look_alike
records = []
class Keep(logging.Handler):
    def emit(self, record):
        records.append((record.name, record.levelname, record.getMessage()))
logging.getLogger().addHandler(Keep())
logging.getLogger("halstream").setLevel(logging.INFO)
import halstream as hs
"""


@pytest.mark.parametrize("variable", ["auto", "", None])
def test_auto_falls_back_to_the_host_and_logs_it_once(run_program: Program, variable: str | None) -> None:
    run_program(
        LOGGED
        + """
s = hs.Stream()
assert hs.backend() == "host"
s.close()
assert hs.use_backend("host") == "host"
assert hs.use_backend("auto") == "host"
[(name, level, text)] = records
assert (name, level) == ("halstream", "INFO")
assert "host backend" in text and "FAKECUDA" not in text, text
assert "cuda: " in text and "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in text and "restart" in text, text
""",
        HALSTREAM_BACKEND=variable,
        FAKECUDA_FAULTS="cuInit:0:803",
    )


def test_auto_takes_a_good_driver_and_logs_nothing(run_program: Program) -> None:
    run_program(
        LOGGED
        + """
assert hs.backend() == "cuda"
assert not records, records
""",
        HALSTREAM_BACKEND=None,
    )


def test_a_named_backend_never_becomes_another_one(run_program: Program) -> None:
    run_program(
        LOGGED
        + """
exc = look_alike.error(hs.Stream)
assert type(exc) is hs.BackendAbsentError and exc.code == 999, exc
assert look_alike.error(hs.backend).code == 999
assert look_alike.error(hs.use_backend, "cuda").code == 999
assert not records, records
# A driver that is well again is used, without a new process.
look_alike.Driver().control("faults off")
assert hs.backend() == "cuda"
""",
        FAKECUDA_FAULTS="cuInit:0:999",
    )


def test_a_bad_ordinal_names_those_that_there_are(run_program: Program) -> None:
    run_program(
        """
        import halstream as hs
        from look_alike import error
        for ordinal in (2, -1, 10**6):
            for make in (hs.Device, hs.Stream, lambda n: hs.empty(4, device=n)):
                exc = error(make, ordinal)
                assert type(exc) is hs.InvalidDeviceError, repr(exc)
                assert str(ordinal) in str(exc) and "2" in str(exc), exc
        """
    )


@pytest.mark.parametrize("function", ["cuDeviceGet", "cuDeviceGetName"])
def test_a_device_that_cannot_be_opened_is_an_error_of_the_backend(run_program: Program, function: str) -> None:
    run_program(
        f"""
        import halstream as hs
        from look_alike import Driver, error
        exc = error(hs.backend)
        assert exc.code == 46 and "{function}" in str(exc), exc
        driver = Driver()
        driver.control("faults off")
        assert hs.backend() == "cuda"
        s = hs.Stream(1)
        s.call(int)
        s.synchronize(timeout=10)
        """,
        FAKECUDA_FAULTS=f"{function}:2:46",
    )
