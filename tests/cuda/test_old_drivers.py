"""Drivers that lack something: what is left works, and what is not is said clearly."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from cuda_help import FAKE, HERE, Program

HEADER = HERE.parents[1] / "cuda" / "symbols.h"
SYMBOLS = re.findall(r'X\((\w+), "(\w+)", (\d+), ([01])', HEADER.read_text())
OPTIONAL = [name for name, _, _, must in SYMBOLS if must == "0"]
MUST = [name for name, _, _, must in SYMBOLS if must == "1"]

#: Symbol -> the features that there are not without it. All else works without any of them.
NEEDED = {
    "cuDeviceGetPCIBusId": {"bus"},
    "cuDeviceCanAccessPeer": {"peers"},
    "cuCtxEnablePeerAccess": {"peers"},
    "cuMemPoolSetAccess": {"peers"},
    "cuStreamBatchMemOp_v2": {"settable_events"},
    "cuMemcpy2DAsync_v2": {"rows"},
    "cuMemcpyPeerAsync": {"copies_between_devices"},
}

SMOKE = """
import json
from smoke import smoke
print(json.dumps(smoke()))
"""


def lacking(found: dict[str, str]) -> set[str]:
    """Features that the driver is said not to support."""
    for feature, text in found.items():
        assert text == "ok" or text.startswith("NotSupportedError: "), (feature, text)
        assert text == "ok" or len(text) > 40, (feature, text)
    return {feature for feature, text in found.items() if text != "ok"}


@pytest.mark.parametrize(
    ("settings", "without"),
    [
        ({}, set()),
        ({"FAKECUDA_VERSION": "13000"}, set()),
        ({"FAKECUDA_VERSION": "12000"}, set()),
        ({"FAKECUDA_VERSION": "11070"}, set()),
        ({"FAKECUDA_VERSION": "11060"}, {"settable_events"}),
        ({"FAKECUDA_VERSION": "11020"}, {"settable_events"}),
        ({"FAKECUDA_POOLS": "0"}, set()),
        ({"FAKECUDA_MEMOPS": "0"}, {"settable_events"}),
        ({"FAKECUDA_MEMOPS": "0", "FAKECUDA_POOLS": "0", "FAKECUDA_VERSION": "11020"}, {"settable_events"}),
        ({"FAKECUDA_QUEUE": "8"}, set()),
    ],
    ids=lambda value: ",".join(f"{k[9:]}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_every_feature_on_every_driver(run_program: Program, settings: dict[str, Any], without: set[str]) -> None:
    done = run_program(SMOKE, **settings)
    assert lacking(json.loads(done.stdout)) == without
    assert done.stderr == ""


#: How many optional functions one program goes through. Each takes a moment, and the program has a limit.
AT_ONCE = 8


@pytest.fixture(scope="module")
def lacks(run_program: Program, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Return a function that gives what there is without an optional function."""
    folder = tmp_path_factory.mktemp("libraries")

    @functools.cache
    def of_some(first: int) -> dict[str, Any]:
        return lacking_each(run_program, str(folder), OPTIONAL[first : first + AT_ONCE])

    return lambda symbol: of_some(OPTIONAL.index(symbol) // AT_ONCE * AT_ONCE)[symbol]


def lacking_each(run_program: Program, folder: str, symbols: list[str]) -> dict[str, Any]:
    """Return what there is without each of some functions; each case has a copy of the library."""
    done = run_program(
        f"""
        import json, os
        import look_alike
        import halstream as hs
        from smoke import smoke
        found = {{}}
        for name in {symbols!r}:
            path = look_alike.without({str(FAKE)!r}, name, "cuGetProcAddress_v2", to=f"{folder}/{{name}}.so")
            os.environ["HALSTREAM_CUDA_LIBRARY"] = path
            hs.use_backend("host")
            hs.use_backend("cuda")
            driver = look_alike.Driver(path)
            assert driver.count("live.contexts") == 0 and not hasattr(driver.lib, name)
            found[name] = smoke()
            os.unlink(path)
        print(json.dumps(found))
        """,
        HALSTREAM_BACKEND="host",
        timeout=50,
    )
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("symbol", OPTIONAL)
def test_what_there_is_without_an_optional_function(lacks: Callable[[str], Any], symbol: str) -> None:
    assert lacking(lacks(symbol)) == NEEDED.get(symbol, set())


def test_without_a_function_that_must_be_there_the_driver_is_refused(
    run_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("libraries")
    run_program(
        f"""
        import os
        import look_alike
        import halstream as hs
        for name in {MUST!r}:
            path = look_alike.without({str(FAKE)!r}, name, "cuGetProcAddress_v2", to=f"{folder}/{{name}}.so")
            os.environ["HALSTREAM_CUDA_LIBRARY"] = path
            exc = look_alike.error(hs.use_backend, "cuda")
            assert type(exc) is hs.BackendAbsentError and name in str(exc), exc
            os.unlink(path)
        """,
        HALSTREAM_BACKEND="host",
    )


def test_a_library_that_exports_only_the_resolver_is_a_driver(
    run_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("libraries") / "shim.so"
    names = [name for name, _, _, _ in SYMBOLS]
    done = run_program(
        f"""
        import json, os
        import look_alike
        path = look_alike.without({str(FAKE)!r}, *{names!r}, to={str(path)!r})
        os.environ["HALSTREAM_CUDA_LIBRARY"] = path
        from smoke import smoke
        print(json.dumps(smoke()))
        """
    )
    assert lacking(json.loads(done.stdout)) == set()


def test_without_memory_operations_an_opened_gate_never_waits_for_what_came_after_it(run_program: Program) -> None:
    run_program(
        """
        import halstream as hs
        from halstream.testing import Gate
        # A driver has one thread for the functions of a device: while it is held by
        # one stream, gates of others are opened before their streams get there.
        for _ in range(100):  # until its thread takes the function of `busy` first
            busy, s, ran = hs.Stream(), hs.Stream(), []
            held = Gate(busy)
            for i in range(3):
                gate = Gate(s)
                gate.open()
                s.call(ran.append, i)
            if not s.query() and ran == []:
                break
            held.open()
        else:
            raise AssertionError("the driver never took the function of `busy` first")
        held.open()
        s.synchronize(timeout=10)
        assert ran == [0, 1, 2]
        """,
        FAKECUDA_MEMOPS="0",
    )


def test_a_copy_that_the_driver_refuses_gives_its_memory_back_once(run_program: Program) -> None:
    run_program(
        """
        import numpy as np
        import halstream as hs
        from look_alike import Driver, error
        from halstream import _memory
        driver, s, x = Driver(), hs.Stream(), hs.empty(1000, np.uint8)
        sources = [np.full(1000, n, np.uint8) for n in range(8)]
        x.copy_from(sources[0], s)
        for n in range(1, 8):
            driver.control("fault cuMemcpyHtoDAsync_v2 +1 2")
            assert error(x.copy_from, sources[n], s).code == 2
        # Each of these needs memory of its own for the data that it took at the call.
        targets = [hs.empty(1000, np.uint8) for _ in sources]
        with hs.testing.Gate(s):
            for source, target in zip(sources, targets):
                target.copy_from(source, s)
        for n, target in enumerate(targets):
            assert (target.numpy(s) == n).all(), n
        del x, target, targets
        s.close()
        assert hs.use_backend("host") == "host"
        assert driver.live() == {}, driver.live()
        """
    )
